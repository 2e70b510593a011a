/** Data for the agent runner in the metadata of a task, and data that the runner returns there. */

/** Key of `metadata`: the session in which the runner had the agent work on the task. */
export const SESSION = 'dispatch_session_id';
/** Key of `metadata`: a session that the runner is asked to continue. */
export const TARGET_SESSION = 'target_session';

/** Maximum number of characters of a result that are kept. */
export const MAX_RESULT = 10_000;
