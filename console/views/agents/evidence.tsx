/** A number with the events that it was derived from. */
import type { Derivation } from '../../client/api-types.ts';
import { BASE } from '../../client/base.ts';
import { useRights } from '../../client/session.ts';
import { openUrl } from '../../parts/drawer.tsx';
import { count } from '../../parts/format.ts';

export type EvidenceOf = Readonly<Record<string, unknown>> | undefined;

/** A number with the events behind it. */
export function Figure({
  name,
  value,
  of,
  evidence,
}: {
  readonly name: string;
  readonly value: string;
  readonly of: string;
  readonly evidence: EvidenceOf;
}) {
  return (
    <li>
      <b>{value}</b> {name} <Evidence of={of} evidence={evidence} />
    </li>
  );
}

/** The derivation of a number: its rule, and links to the events. */
export function Evidence({ of, evidence }: { readonly of: string; readonly evidence: EvidenceOf }) {
  const { ofDeployment } = useRights();
  const found = evidence?.[of] as Derivation | undefined;
  if (!found) return null;
  return (
    <details class="evidence">
      <summary>Evidence</summary>
      <p>
        {count(found.total)} by the rule <a href={`${BASE}/docs`}>{found.rule}</a>
        {found.numbers && `, from ${found.numbers.join(' and ')}`}
        {found.from !== undefined && `: events from position ${count(found.from)} to ${count(found.to ?? 0)}`}
      </p>
      {found.positions && (
        <p class="positions">
          {found.positions.map((position) =>
            ofDeployment ? (
              <a key={position} href={openUrl(`position:${position}`)}>
                {position}
              </a>
            ) : (
              <span key={position}>{position}</span>
            ),
          )}
        </p>
      )}
    </details>
  );
}
