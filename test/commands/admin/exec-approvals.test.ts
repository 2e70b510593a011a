/** Decisions about commands of agents: what is in the log before and after the gateway has been asked. */
import { expect } from 'chai';
import { decideApproval } from '../../../commands/admin/exec-approvals.ts';
import { addGateway } from '../../../commands/admin/gateways.ts';
import { AppError } from '../../../shared/errors.ts';
import { GatewayError, type Gateways } from '../../../shared/ports/admin/gateways.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';

type Call = Gateways['call'];

describe('a decision about an execution approval', () => {
  const TYPES = ['ExecApprovalDecided', 'ExecApprovalAnswered'];

  /** A log with a primary gateway, and what is decided there. */
  async function deployment() {
    const world = memoryWorld();
    const commands = world.process();
    const context = () => ({ origin: testOrigin });
    await addGateway(commands, context(), { name: 'main', url: 'http://gate.example', token: '', is_primary: true });
    const written = () => world.written().filter(({ type }) => TYPES.includes(type));
    const decide = (call: Call) =>
      decideApproval(commands, context(), { call }, { id: 'a1', action: 'approve', reason: 'needed' }).then(
        () => 200,
        (error) => (error instanceof AppError ? error.status : String(error)),
      );
    return { written, decide };
  }

  it('is recorded before the gateway is called, and its outcome afterwards', async () => {
    const { written, decide } = await deployment();
    let before: unknown;
    const status = await decide(async () => {
      before = written().map(({ type, data }) => [type, data]);
      return { status: 200, body: { ok: true } };
    });
    expect(status).to.equal(200);
    const about = { approval_id: 'a1', decision: 'approve', gateway_id: 1, gateway_name: 'main' };
    expect(before).to.deep.equal([['ExecApprovalDecided', { ...about, reason: 'needed', taken: false }]]);
    const [, answered] = written();
    const { decision_id, ...outcome } = answered?.data ?? {};
    expect([answered?.type, outcome]).to.deep.equal([
      'ExecApprovalAnswered',
      { ...about, outcome: 'taken', status: 200 },
    ]);
    expect(decision_id).to.be.a('number');
  });

  it('is recorded as refused or unanswered if the gateway rejects it or does not respond', async () => {
    for (const [call, expected, outcome] of [
      [async () => ({ status: 404, body: { error: 'no such approval' } }), 404, { outcome: 'refused', status: 404 }],
      [async () => ({ status: 500, body: null }), 502, { outcome: 'refused', status: 500 }],
      [() => Promise.reject(new GatewayError('away', false)), 502, { outcome: 'unanswered', status: null }],
      [() => Promise.reject(new GatewayError('slow', true)), 504, { outcome: 'unanswered', status: null }],
    ] as const) {
      const { written, decide } = await deployment();
      expect(await decide(call as Call)).to.equal(expected);
      expect(written().map(({ type }) => type)).to.deep.equal(TYPES);
      expect(written()[1]?.data).to.deep.include(outcome);
    }
  });

  it('stays without an outcome if it is interrupted', async () => {
    const { written, decide } = await deployment();
    // The process ends while the gateway is being asked.
    const interrupted = decide(() => new Promise(() => undefined));
    await Promise.race([interrupted, until('the decision is written', async () => written().length > 0)]);
    expect(written().map(({ type }) => type)).to.deep.equal(['ExecApprovalDecided']);
  });
});
