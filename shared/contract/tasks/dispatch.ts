/** What the metadata of a task tells the agent runner, and what the runner tells there. */

/** Key of `metadata`: the session in which the runner had the agent work on the task. */
export const SESSION = 'dispatch_session_id';
/** Key of `metadata`: a session that the runner is asked to go on with. */
export const TARGET_SESSION = 'target_session';

/** Characters of a result that are kept. */
export const MAX_RESULT = 10_000;
