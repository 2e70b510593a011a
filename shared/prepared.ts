/**
 * Marks, at its start, a statement that PGlite prepares when it is repeated (`infra/database/statements.ts`). Planning is
 * a large part of the cost of statements that run with every write, and of lists that clients ask for again after every
 * write. Use it only where the plan does not depend on how full the tables are, or may follow their statistics: PGlite
 * plans anew once a table has been analysed, which happens when a tenth of it has changed. On a server, where that can
 * take minutes, a plan made for an empty table was kept and cost 10 times the planning it saved, so there this is a mere
 * comment.
 */
export const PREPARED = '/* prepared */';
