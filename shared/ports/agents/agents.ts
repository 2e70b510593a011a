/** Agents as the read models have them, for commands that know only their names. */
export interface AgentDirectory {
  /** Those names that belong to agents of the workspace, and whether each has a session. In the order of the names. */
  named(
    workspace: number,
    names: readonly string[],
  ): Promise<readonly { readonly name: string; readonly hasSession: boolean }[]>;
}
