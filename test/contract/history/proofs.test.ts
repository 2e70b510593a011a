/** Proofs over HTTP, checked by a verifier that has nothing but the responses. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { consistencyResponse, proofResponse } from '../../../shared/contract/history/proofs.ts';
import { fixture } from '../../support/fixture.ts';
import { isContinued, isIncluded, leafOfEvent, openCheckpoint, treeHashOf } from '../../support/log-proof.ts';
import { bodyOf } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

describe('/api/history: proofs', function () {
  this.timeout(120_000);
  const world = fixture(startAuthWorld);

  /** Each use of the global key is an event itself. */
  let admin: string;
  let key: string;
  let leaves: readonly Buffer[];
  let ids: readonly string[];
  before(async () => {
    admin = await world.makeSession({ username: 'paula', role: 'admin' });
    // Enough events for trees of several levels.
    for (let n = 0; n < 20; n++) await world.makeAgent(`leaf-${n}`);
    await until('a checkpoint is signed', async () => (await get('checkpoint')).status === 200);
    key = (await get('key')).body;
    const { events } = (await get('events?limit=1000')).body;
    ids = events.map(({ id }: { id: string }) => id);
    leaves = events.map(leafOfEvent);
  });

  const get = (path: string, as: string = admin) => world.ask('GET', `/api/history/${path}`, { as });
  const hashes = (path: readonly string[]) => path.map((hash) => Buffer.from(hash, 'base64'));
  const rootOf = (size: number) => treeHashOf(leaves.slice(0, size));

  it('the checkpoint is signed by the key, and is the root of the listed events', async () => {
    const reply = await get('checkpoint');
    expect(reply.headers.get('content-type')).to.match(/^text\/plain/);
    const { origin, size, root } = openCheckpoint(reply.body, key);
    expect(key).to.match(/^signalbox\/[0-9a-f]{16}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$/);
    expect(key.startsWith(`${origin}+`)).to.equal(true);
    expect(root).to.deep.equal(rootOf(size));
    const same = await get(`checkpoint?size=${size}`);
    expect(same.body).to.equal(reply.body);
    expect((await get(`key?size=${size}`)).body).to.equal(key);
  });

  it('every proof names the position of the last event of its tree', async () => {
    const { events } = (await get('events?limit=1000')).body;
    const { size } = openCheckpoint((await get('checkpoint')).body, key);
    const [first] = ids;
    for (const [path, last] of [
      ['checkpoint', size],
      [`checkpoint?size=${size}`, size],
      [`key?size=${size}`, size],
      [`proof?event=${first}&size=${size - 1}`, size - 1],
      ['consistency?from=1&to=3', 3],
    ] as const) {
      const { status, headers } = await get(path);
      expect([path, status, headers.get('x-signalbox-position')]).to.deep.equal([
        ...[path, 200, String(events[last - 1].position)],
      ]);
    }
  });

  it('each event is included in every tree that is large enough', async () => {
    const { size: signed } = openCheckpoint((await get('checkpoint')).body, key);
    for (const [index, id] of ids.entries()) {
      const sizes = new Set([index + 1, Math.max(signed, index + 1), ids.length]);
      for (const size of sizes) {
        const body = conforms(proofResponse, await get(`proof?event=${id}&size=${size}`));
        const leaf = Buffer.from(body.leaf, 'base64');
        expect(leaf).to.deep.equal(leaves[index]);
        expect(body).to.include({ index, size });
        expect(isIncluded({ leaf, index, size, path: hashes(body.path) }, rootOf(size)), `${index}/${size}`).to.equal(
          true,
        );
      }
    }
    const { body } = await get(`proof?event=${ids[0]?.toUpperCase()}`);
    // Another checkpoint is signed every 30 seconds.
    const { size: latest } = openCheckpoint((await get('checkpoint')).body, key);
    expect(body.size).to.be.oneOf([signed, latest]);
  });

  it('each tree is consistent with the smaller ones', async () => {
    const end = ids.length;
    for (const [from, to] of [
      [1, end],
      [2, 3],
      [end - 1, end],
      [7, 16],
      [16, 33],
      [end, end],
    ] as const) {
      const { body } = await get(`consistency?from=${from}&to=${to}`);
      expect(consistencyResponse.parse(body)).to.deep.equal(body);
      const first = { size: from, root: rootOf(from) };
      expect(isContinued(first, { size: to, root: rootOf(to) }, hashes(body.path)), `${from}/${to}`).to.equal(true);
    }
    expect((await get('consistency?from=5&to=5')).body).to.deep.equal({ path: [] });
  });

  it('an event after the last checkpoint is proven in the current tree', async () => {
    const body = bodyOf(
      await world.ask('POST', '/api/agents', { as: admin, body: { name: 'newest', role: 'x' } }),
      201,
    );
    const found = (await get(`events?stream=agent-1-${body.agent.id}`)).body.events[0];
    const proven = await get(`proof?event=${found.id}&size=${found.index + 1}`);
    expect(proven.status).to.equal(200);
    expect(Buffer.from(proven.body.leaf, 'base64')).to.deep.equal(leafOfEvent(found));
  });

  it('a value out of range is rejected with the range, and an unknown event returns 404', async () => {
    const id = ids[4] as string;
    const cases: [string, number, RegExp][] = [
      [`proof?event=${id}&size=4`, 400, /^size: must be a whole number from 5 to \d+$/],
      [`proof?event=${id}&size=99999999`, 400, /^size: must be a whole number from 5 to \d+$/],
      [`proof?event=${id}&size=-1`, 400, /from 5 to \d+$/],
      [`proof?event=${id}&size=x`, 400, /^size/],
      ['proof', 400, /^event/],
      ['proof?event=x', 400, /^event: must be the id of an event/],
      [`proof?event=${randomUUID()}`, 404, /^Event not found/],
      ['consistency', 400, /^from/],
      ['consistency?from=0&to=5', 400, /^from: must be a whole number from 1 to 5$/],
      ['consistency?from=6&to=5', 400, /^from: must be a whole number from 1 to 5$/],
      ['consistency?from=1&to=99999999', 400, /^to: must be a whole number from 1 to \d+$/],
      ['checkpoint?size=0', 400, /^size: must be a whole number from 1 to \d+$/],
      ['checkpoint?size=99999999', 400, /^size: must be a whole number from 1 to \d+$/],
      ['checkpoint?size=1.5', 400, /^size/],
      ['key?size=99999999', 400, /^size/],
    ];
    for (const [path, status, says] of cases) {
      const reply = await get(path);
      expect(reply.status, path).to.equal(status);
      expect(reply.body.error, path).to.match(says);
    }
    const { size } = openCheckpoint((await get('checkpoint')).body, key);
    const unsigned = [...Array(size).keys()].map((n) => n + 1);
    const replies = await Promise.all(unsigned.map((one) => get(`checkpoint?size=${one}`)));
    expect(replies.filter(({ status }) => status === 404).length).to.be.above(0);
    expect(replies.find(({ status }) => status === 404)?.body.error).to.match(/the nearest (is|are) of \d+/);
  });
});
