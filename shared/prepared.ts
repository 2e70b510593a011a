/**
 * Marks, at its start, a statement that PGlite prepares when it is repeated (`infra/database/statements.ts`). Planning
 * is a large part of the cost of statements that run with every write, and of lists that clients request after every
 * write. Use it only if the plan does not depend on the number of rows in the tables, or may follow their statistics:
 * PGlite plans again once a table has been analysed, which happens when a tenth of it has changed, and within seconds
 * when it has doubled. On a server that can take minutes: a plan for an empty table was kept and cost 10 times the
 * planning that it saved. So on a server this is only a comment.
 */
export const PREPARED = '/* prepared */';
