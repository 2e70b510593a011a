/** Opens backups with the key of the deployment that wrote them. */
import { ownBackupKey } from '../../infra/credentials/backup-key.ts';
import type { Database } from '../../infra/database/database.ts';
import { type Container, openContainer } from '../../infra/tools/container.ts';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';

export interface ReadBackup extends Container {
  readonly written: readonly LoggedEvent[];
  /** Rows of a table of credentials. */
  readonly rowsOf: (table: string) => Readonly<Record<string, unknown>>[];
}

/** Everything in a backup. Its folder is removed before this resolves, so that its `source` cannot be copied. */
export async function readBackup(database: Pick<Database, 'pool'>, path: string): Promise<ReadBackup> {
  const container = await openBackup(database, path);
  try {
    const written: LoggedEvent[] = [];
    for await (const page of container.source.log.readAll()) written.push(...page);
    const { pages } = container.rows;
    return {
      ...container,
      written,
      rowsOf: (table) => (pages.get(table) ?? []).flatMap((text) => JSON.parse(text)),
    };
  } finally {
    await container.close();
  }
}

/** The caller closes it. */
export async function openBackup({ pool }: Pick<Database, 'pool'>, path: string): Promise<Container> {
  return openContainer(path, [(await ownBackupKey(pool)).identity]);
}
