/** Users and agents by their names, as the read models have them: for names that are older than their claims. */
export interface NameDirectory {
  /**
   * Those whose names share this key (`nameKeys`): users and agents of a workspace, or all users.
   *
   * @param scope a workspace id, or `all`
   */
  holders(scope: number | 'all', key: string): Promise<readonly NameHolder[]>;
}

export interface NameHolder {
  readonly type: 'user' | 'agent';
  readonly id: number;
}
