/**
 * Statements that are sent together: one round trip, and one transaction, because the protocol ends the transaction
 * only at the Sync after the last statement. Each statement sees the effects of those before it.
 */
import pg from 'pg';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Name under which the connection keeps the plan; at most one statement has a name. */
  readonly name?: string | undefined;
}

/** `pg.Connection` with members that its types omit. */
type Connection = pg.Connection & {
  /** Texts by name: those that the server has, and those in flight. */
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
};

/** `pg` accepts objects that send their own messages, as cursors do, and lists the results of several statements. */
class Together extends pg.Query {
  constructor(statements: readonly Statement[], callback: (error: Error | undefined, results: unknown) => void) {
    const { text = '', name } = statements.find((one) => one.name !== undefined) ?? {};
    super(name === undefined ? { text } : { text, name }, callback);
    this.submit = (given) => {
      const connection = given as Connection;
      if (name !== undefined && connection.parsedStatements[name] === undefined) {
        // First, because `pg` assigns the name to the first parsed statement.
        connection.parse({ name, text, types: [] }, true);
        connection.submittedNamedStatements[name] = text;
      }
      const withoutSync: pg.Connection = Object.create(connection, { sync: { value: () => undefined } });
      for (const one of statements) {
        const config = { ...one, values: [...one.values], queryMode: 'extended' };
        new pg.Query(config as pg.QueryConfig).submit(withoutSync);
      }
      connection.sync();
    };
  }
}

const BEGIN: Statement = { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', values: [] };
const COMMIT: Statement = { text: 'COMMIT', values: [] };

/**
 * The same for statements that only read: all of them see the database at one moment.
 *
 * @throws the error of the first failed statement
 */
export async function runAtOneMoment(
  pool: Pick<pg.Pool, 'connect'>,
  statements: readonly Statement[],
): Promise<readonly unknown[][]> {
  const rows = await runTogether(pool, [BEGIN, ...statements, COMMIT]);
  return rows.slice(1, -1);
}

/**
 * @param nameOn returns the name under which a connection keeps the plan of a text; default: statements have names
 * @returns the rows of each, in order
 * @throws the error of the first failed statement; then no statement has changed anything
 */
export async function runTogether(
  pool: Pick<pg.Pool, 'connect'>,
  statements: readonly Statement[],
  nameOn?: (client: pg.PoolClient, text: string) => Promise<string | undefined>,
): Promise<readonly unknown[][]> {
  const client = await pool.connect();
  try {
    const named: Statement[] = nameOn ? [] : [...statements];
    if (nameOn) for (const one of statements) named.push({ ...one, name: await nameOn(client, one.text) });
    const results = await new Promise<unknown>((resolve, reject) => {
      client.query(new Together(named, (error, all) => (error ? reject(error) : resolve(all))));
    });
    const rows = (results as readonly pg.QueryResult[]).map((one) => one.rows);
    client.release();
    return rows;
  } catch (error) {
    // Without a response from the server, the statements may still run. A failed BEGIN ... COMMIT leaves a transaction.
    const isOver = error instanceof pg.DatabaseError && statements[0] !== BEGIN;
    client.release(!isOver);
    throw error;
  }
}
