/** Users and agents by their names, from the read models: for names that are older than their claims. */
export interface NameDirectory {
  /**
   * Users and agents whose names have this key (`nameKeys`): those of a workspace, or all users.
   *
   * @param scope a workspace id, or `all`
   */
  holders(scope: number | 'all', key: string): Promise<readonly NameHolder[]>;
}

export interface NameHolder {
  readonly type: 'user' | 'agent';
  readonly id: number;
}
