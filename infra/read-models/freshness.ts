/**
 * Freshness of read models and credentials (`shared/ports/freshness.ts`).
 *
 * On the embedded database this process is the only one, so its own followers and a counter of credential changes know
 * everything, per workspace. On a server, the database is asked (`Positions.ask`): what it said of a read model holds for
 * a request if it said so after the request arrived, and if the read model had reached the head by then.
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { Freshness, Stamp } from '../../shared/ports/freshness.ts';
import type { Database } from '../database/database.ts';
import type { ChangeTracker } from './change-tracker.ts';
import type { Asked, Positions } from './positions.ts';

export function createFreshness(parts: {
  database: Pick<Database, 'kind'>;
  projections: readonly Projection[];
  changes: ChangeTracker;
  /** Number of changes to credentials that this process has made. */
  credentialChanges: () => number;
  positions: Pick<Positions, 'reachSchemas' | 'showNow' | 'shown' | 'ask'>;
}): Freshness {
  const { database, projections, changes, credentialChanges, positions } = parts;
  const schemas = new Map(projections.map((projection) => [projection.name, schemaOf(projection)]));
  const schemasOf = (names: readonly string[]): readonly string[] =>
    names.map((name) => {
      const schema = schemas.get(name);
      if (!schema) throw new Error(`there is no projection ${name}`);
      return schema;
    });
  if (database.kind === 'embedded') {
    const stampOf = (wanted: readonly string[], workspace: number | 'all', position: Position): Stamp => ({
      value: wanted.map((schema) => changes.last(schema, workspace)).join(','),
      position,
    });
    const stampNow: Freshness['stampNow'] = (names, workspace, at) => {
      const wanted = schemasOf(names);
      const position = positions.showNow(wanted, at);
      return position === undefined ? undefined : stampOf(wanted, workspace, position);
    };
    const stamp: Freshness['stamp'] = async (names, workspace, at) => {
      const wanted = schemasOf(names);
      return stampOf(wanted, workspace, await positions.reachSchemas(wanted, at));
    };
    const recent: Freshness['recent'] = (names, workspace) => stampOf(schemasOf(names), workspace, 0).value;
    const withCredentials = ({ value }: Stamp) => `${credentialChanges()} ${value}`;
    return {
      stampNow,
      stamp,
      recent,
      credentials: async (names, since) => withCredentials(await stamp(names, 'all', { since })),
      credentialsNow(names, since) {
        const found = stampNow(names, 'all', { since });
        return found && withCredentials(found);
      },
    };
  }

  /** What the read models looked like when asked, and what they showed then. */
  const stampFrom = ({ checkpoints }: Pick<Asked, 'checkpoints'>, wanted: readonly string[]): Stamp => ({
    value: wanted.map((schema) => checkpoints.get(schema)?.changed ?? '').join(','),
    position: Math.min(...wanted.map((schema) => positions.shown(schema, checkpoints.get(schema)?.reached ?? 0))),
  });
  return {
    stampNow: () => undefined,
    credentialsNow: () => undefined,
    async stamp(names, _workspace, at) {
      const wanted = schemasOf(names);
      const [asked, position] = await Promise.all([positions.ask(at.since), positions.reachSchemas(wanted, at)]);
      const early = stampFrom(asked, wanted);
      if (at.since === undefined && at.position === undefined) return early;
      // If it was said before they had reached the head, it may be from before what the caller has to see.
      const { value } = early.position >= position ? early : stampFrom(await positions.ask(), wanted);
      return { value, position };
    },
    recent: async (names, _workspace, since) => stampFrom(await positions.ask(since), schemasOf(names)).value,
    async credentials(names, since) {
      const wanted = schemasOf(names);
      const { credentials, credentialsAt, ...asked } = await positions.ask(since);
      const early = stampFrom(asked, wanted);
      if (early.position >= credentialsAt) return `${credentials} ${early.value}`;
      await positions.reachSchemas(wanted, { position: credentialsAt });
      return `${credentials} ${stampFrom(await positions.ask(), wanted).value}`;
    },
  };
}
