/**
 * Batches of several projections that share a statement: which are written, which are refused, and what waits for what.
 */
import { expect } from 'chai';
import type { CompiledQuery } from 'kysely';
import type { AnyDatabase } from '../../infra/database/database.ts';
import { BatchWriter } from '../../infra/read-models/batch-writer.ts';

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
    return { statements, writer: new BatchWriter({ executeQuery } as unknown as AnyDatabase) };
  }

  it('that are ready in the same turn share a statement', async () => {
    const { statements, writer } = open();
    await Promise.all(['a_v1', 'b_v1', 'c_v1'].map((schema) => writer.write(batch(schema))));
    expect(statements).to.deep.equal([['a_v1', 'b_v1', 'c_v1']]);
  });

  it('one that is refused does not make the others fail', async () => {
    const { statements, writer } = open('b_v1');
    const outcomes = await Promise.allSettled(['a_v1', 'b_v1', 'c_v1'].map((schema) => writer.write(batch(schema))));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    expect(statements).to.deep.equal([['a_v1', 'b_v1', 'c_v1'], ['a_v1'], ['b_v1'], ['c_v1']]);
    await writer.write(batch('a_v1'));
    expect(statements.at(-1)).to.deep.equal(['a_v1']);
  });
});
