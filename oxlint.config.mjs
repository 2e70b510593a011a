/** Promises that are dropped, and which file may import which: README, "Rooms". This is the only place of these rules. */

/** Each room imports only from the rooms behind it. */
const CHAIN = ['api', 'commands', 'queries', 'projections', 'shared'];
/** No room imports from these; only `infra` imports from all rooms. */
const APART = ['infra', 'console', 'client', 'test'];

/** Folders and files of `infra`, the lowest layer first. Each imports only from its own layer and those below it. */
const LAYERS = [
  ['version', 'logging', 'config', 'host', 'event-log', 'embedded', 'stores', 'redis'],
  ['database', 'tracing', 'credentials', 'following'],
  ['read-models', 'jobs', 'postgres', 'eventstore'],
  ['core'],
  ['proof', 'processes', 'outgoing', 'log-index', 'tools', 'readiness', 'metrics'],
  ['schedules', 'work', 'main', 'prepare', 'cli', 'bin'],
];

const forbid = (files, message, ...regexes) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns: regexes.map((regex) => ({ regex, message })) }] },
});
const up = (names) => `^(\\.\\./)+(${names.join('|')})(/|\\.ts$)`;
const beside = (names) => `^\\./(${names.join('|')})(/|\\.ts$)`;

const rooms = CHAIN.map((room, at) =>
  forbid(
    [`${room}/**`],
    `${room} imports only from the rooms behind it: ${CHAIN.join(' → ')}.`,
    up([...CHAIN.slice(0, at), ...APART]),
  ),
);

const below = 'infra imports only from the layers below.';
const outside = up(APART.slice(1));
const layers = LAYERS.flatMap((layer, at) => {
  const above = LAYERS.slice(at + 1).flat();
  if (above.length === 0) return [forbid(['infra/**'], below, outside)];
  return [
    forbid(
      layer.map((name) => `infra/${name}/**`),
      below,
      outside,
      up(above),
    ),
    forbid(
      layer.map((name) => `infra/${name}.ts`),
      below,
      outside,
      beside(above),
    ),
  ];
});

const HOUSE = [...CHAIN, 'infra', 'test'];

export default {
  plugins: ['typescript', 'import'],
  categories: { correctness: 'off' },
  rules: {
    'typescript/no-floating-promises': ['error', { ignoreVoid: false }],
    'typescript/no-misused-promises': 'error',
    'import/no-cycle': ['error', { ignoreTypes: false }],
  },
  overrides: [
    ...rooms,
    // The last override that matches a file counts.
    ...layers.toReversed(),
    forbid(['console/**'], 'The console uses only the public interface.', up(HOUSE)),
    forbid(
      ['client/**'],
      'The client is a package of its own and uses only the public interface.',
      up([...HOUSE, 'console']),
    ),
  ],
  ignorePatterns: ['dist'],
};
