/** Which workspaces are strictly isolated: asked before everything that workspaces share. */
export interface Isolations {
  isStrict(workspace: number): Promise<boolean>;
}
