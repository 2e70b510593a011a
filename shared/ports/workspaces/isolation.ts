/** Which workspaces are strictly isolated: asked before everything that workspaces share. */
export interface Isolations {
  /** @param since `performance.now()`: as it was at any time after this will do; by default, as it is now */
  isStrict(workspace: number, since?: number): Promise<boolean>;
}
