/** The time window of an agent's numbers. */
import { setParams, useAddress } from '../../client/address.ts';
import { Choice } from '../../parts/basic.tsx';

const HOURS = [
  ['24', '24 hours'],
  ['72', '3 days'],
  ['168', '7 days'],
  ['720', '30 days'],
] as const;

export function useHours() {
  const { query } = useAddress();
  const hours = query.get('hours') ?? '24';
  return {
    hours,
    choice: (
      <Choice
        label="Window"
        value={hours}
        options={HOURS}
        set={(to) => setParams({ hours: to === '24' ? undefined : to }, { replace: true })}
      />
    ),
  };
}
