/** Which workspaces are strictly isolated: checked before every access to shared resources. */
export interface Isolations {
  /** @param since `performance.now()`: a state from any time after this is acceptable; default: now */
  isStrict(workspace: number, since?: number): Promise<boolean>;
}
