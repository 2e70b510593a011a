/** What the tests of the group share. */
import { call, type TestService } from '../service.ts';

export const makeAgent = async (base: TestService, name: string): Promise<{ id: number }> =>
  (await call(base, 'POST', '/api/agents', { name, role: 'coder' })).body.agent;
