/** The read of the last event, which the client's helpers do not make: its time limit, and what its failures do. */
import { createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { connect } from '../../../infra/eventstore/client.ts';
import { startEventStoreStandIn } from '../../support/eventstore-stand-in.ts';
import { until } from '../../support/until.ts';
import { errorOf } from '../event-log/conformance/subject.ts';

/** A server on which `accept` decides about each connection. */
async function startServer(accept: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    accept(socket);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };
  return {
    host: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

const connectTo = (url: string) => {
  const connection = connect(url, '', () => undefined);
  return Object.assign(connection, { [Symbol.asyncDispose]: () => connection.close() });
};

describe('event log: EventStoreDB, the read of the last event', function () {
  this.timeout(15_000);

  it('ends at its time limit while no node of a cluster responds', async () => {
    await using first = await startServer(() => undefined);
    await using second = await startServer(() => undefined);
    await using connection = connectTo(`esdb://${first.host},${second.host}?tls=false`);
    // The client itself would look for a node for about a minute.
    expect(await errorOf(connection.readLast(100))).to.include({ kind: 'unavailable' });
  });

  it('causes no warning of Node where many wait at once', async () => {
    await using server = await startServer(() => undefined);
    await using connection = connectTo(`esdb://${server.host}?tls=false`);
    const warnings: string[] = [];
    const warned = ({ name }: Error) => warnings.push(name);
    process.on('warning', warned);
    await Promise.all(Array.from({ length: 20 }, () => errorOf(connection.readLast(100))));
    process.off('warning', warned);
    expect(warnings).to.deep.equal([]);
  });

  it('makes the pauses between attempts longer with each failure', async () => {
    await using server = await startServer((socket) => socket.destroy());
    await using connection = connectTo(`esdb://${server.host}?tls=false`);
    for (let failures = 0; failures < 6; failures++) {
      await connection.closed();
      expect(await errorOf(connection.readLast(5_000))).to.include({ kind: 'unavailable' });
    }
    const begun = performance.now();
    await connection.closed();
    expect(performance.now() - begun).to.be.greaterThan(200);
  });
});

describe('event log: EventStoreDB, a cluster without a leader', () => {
  it('leaves no unhandled rejection when a call fails while the client looks for the leader', async () => {
    const standIn = await startEventStoreStandIn();
    const late: string[] = [];
    const url = `esdb+discover://127.0.0.1:${standIn.port}?tls=false&maxDiscoverAttempts=10&discoveryInterval=100`;
    const connection = connect(url, '', (error) => late.push((error as Error).message));
    const ignored = () => undefined;
    let confirmed = false;
    connection.subscribe(
      0,
      { take: ignored },
      {
        confirmed: () => {
          confirmed = true;
        },
        event: ignored,
        checkpoint: ignored,
        caughtUp: ignored,
        fellBehind: ignored,
        failed: ignored,
      },
    );
    await until('the subscription works', () => confirmed);
    standIn.setLeader(false);
    // The client drops its connection, and the next call looks for another node.
    standIn.refuseReads(14);
    expect(await errorOf(connection.readLast(5_000))).to.include({ kind: 'unavailable' });
    await connection.closed();
    const before = standIn.lookUps();
    const looking = errorOf(connection.readLast(5_000));
    await until('the client looks for the leader', () => standIn.lookUps() > before);
    // The subscription ends with the old connection. Mocha fails the test for an unhandled rejection.
    standIn.dropConnections();
    expect(await looking).to.include({ kind: 'unavailable', message: 'Failed to discover after 10 attempts.' });
    await until('the failure of the subscription is handled', () => late.length > 0);
    expect(late[0]).to.equal('Failed to discover after 10 attempts.');
    await connection.close();
    await standIn.stop();
  });
});
