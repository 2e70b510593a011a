/** All tests of the run use the embedded service in their own processes: no servers, and no process is started. */
for (const name of ['DATABASE_URL', 'REDIS_URL', 'EVENTSTORE_URL', 'STACK']) delete process.env[`TEST_${name}`];
process.env.TEST_ONE_PROCESS = '1';
