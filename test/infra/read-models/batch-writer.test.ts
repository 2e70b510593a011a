/**
 * Batches of several projections that share a statement: which are written, which are refused, and what waits for what.
 */
import { expect } from 'chai';
import type { CompiledQuery } from 'kysely';
import type { AnyDatabase } from '../../../infra/database/database.ts';
import { BatchWriter, type RowWrites } from '../../../infra/read-models/batch-writer.ts';
import { nextTurn } from '../../../shared/waiting.ts';
import { outcomeText } from '../../support/kit.ts';

describe('writes of several followers', () => {
  const batch = (schema: string) => ({
    writes: [],
    move: { schema, generation: 1, from: 0, to: 5, at: 1, notify: false },
  });
  const schemasOf = ({ parameters }: CompiledQuery) => parameters.flat().filter((value) => typeof value === 'string');

  /** A database that refuses every statement that names `refused`. */
  function open(refused?: string) {
    const statements: unknown[][] = [];
    const executeQuery = async (query: CompiledQuery) => {
      const schemas = schemasOf(query);
      statements.push(schemas);
      if (refused && schemas.includes(refused)) throw new Error(`${refused} is fenced`);
      return { rows: [{ moved: schemas.length }] };
    };
    const writes: RowWrites = { inFlight: undefined };
    return { statements, writes, writer: new BatchWriter({ executeQuery } as unknown as AnyDatabase, writes) };
  }

  it('share a statement if they are ready in the same turn', async () => {
    const { statements, writer } = open();
    await Promise.all(['a_v1', 'b_v1', 'c_v1'].map((schema) => writer.write(batch(schema))));
    expect(statements).to.deep.equal([['a_v1', 'b_v1', 'c_v1']]);
  });

  it('are reported while they are pending, even if they fail later', async () => {
    const { statements, writes, writer } = open('b_v1');
    for (const schema of ['a_v1', 'b_v1']) {
      const outcome = outcomeText(writer.write(batch(schema)));
      const { inFlight } = writes;
      expect(inFlight, schema).to.be.instanceOf(Promise);
      await inFlight;
      expect(statements.at(-1)).to.deep.equal([schema]);
      expect(await outcome).to.equal(schema === 'b_v1' ? 'b_v1 is fenced' : 'done');
      await nextTurn();
      expect(writes.inFlight, `after ${schema}`).to.equal(undefined);
    }
  });

  it('do not fail because of another failed write', async () => {
    const { statements, writer } = open('b_v1');
    const outcomes = await Promise.allSettled(['a_v1', 'b_v1', 'c_v1'].map((schema) => writer.write(batch(schema))));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    expect(statements).to.deep.equal([['a_v1', 'b_v1', 'c_v1'], ['a_v1'], ['b_v1'], ['c_v1']]);
    await writer.write(batch('a_v1'));
    expect(statements.at(-1)).to.deep.equal(['a_v1']);
  });
});
