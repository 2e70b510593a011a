/**
 * Statements that are sent together: one round trip, and one transaction, because the protocol ends it only at the Sync
 * behind the last of them. Each sees what those before it have done.
 */
import pg from 'pg';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Under which the connection keeps its plan; at most one statement has a name. */
  readonly name?: string | undefined;
}

/** `pg.Connection` with what its types leave out. */
type Connection = pg.Connection & {
  /** Texts by name: those that the server has, and those on their way. */
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
};

/** `pg` takes objects that send messages of their own, as cursors do, and lists the results of one with several statements. */
class Together extends pg.Query {
  constructor(statements: readonly Statement[], callback: (error: Error | undefined, results: unknown) => void) {
    const { text = '', name } = statements.find((one) => one.name !== undefined) ?? {};
    super(name === undefined ? { text } : { text, name }, callback);
    this.submit = (given) => {
      const connection = given as Connection;
      if (name !== undefined && connection.parsedStatements[name] === undefined) {
        // First, because `pg` takes the first statement that was parsed for the one with the name.
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

/**
 * @param nameOn gives the name under which a connection keeps the plan of a text
 * @returns the rows of each, in order
 * @throws the error of the first statement that fails; none has then changed anything
 */
export async function runTogether(
  pool: Pick<pg.Pool, 'connect'>,
  statements: readonly Statement[],
  nameOn: (client: pg.PoolClient, text: string) => Promise<string | undefined>,
): Promise<readonly unknown[][]> {
  const client = await pool.connect();
  try {
    const named: Statement[] = [];
    for (const one of statements) named.push({ ...one, name: await nameOn(client, one.text) });
    const results = await new Promise<unknown>((resolve, reject) => {
      client.query(new Together(named, (error, all) => (error ? reject(error) : resolve(all))));
    });
    client.release();
    return (results as readonly pg.QueryResult[]).map(({ rows }) => rows);
  } catch (error) {
    // Without a response of the server, the statements may still run.
    client.release(!(error instanceof pg.DatabaseError));
    throw error;
  }
}
