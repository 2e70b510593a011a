/** How often tests that repeat random work do so: TEST_RUNS=many for the nightly run, which has time. */
const MANY = process.env.TEST_RUNS === 'many';

export const runs = (few: number, many: number): number => (MANY ? many : few);
