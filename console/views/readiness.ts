/** How far the read models lag behind the log, according to `/metrics`; for callers who may read it. */
import { useEffect, useState } from 'preact/hooks';
import { BASE } from '../client/base.ts';
import { useRights } from '../client/session.ts';

export interface Readiness {
  /** Of the log. */
  readonly position: number;
  /** Number of events by which the slowest read model lags behind. */
  readonly behind: number;
}

const EVERY_MS = 15_000;

/** @param text in Prometheus format */
export function readMetrics(text: string): Readiness | undefined {
  const valuesOf = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map(([, value]) => Number(value));
  const [position] = valuesOf('signalbox_log_position');
  const models = valuesOf('signalbox_projection_position');
  if (position === undefined || models.length === 0) return undefined;
  return { position, behind: Math.max(0, position - Math.min(...models)) };
}

export function useReadiness(): Readiness | undefined {
  const { me } = useRights();
  const [now, setNow] = useState<Readiness>();
  useEffect(() => {
    if (me.tenant_id !== 1) return;
    const stop = new AbortController();
    const ask = async () => {
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(10_000)]);
      // biome-ignore lint/style/noRestrictedGlobals: no call of the API, so the client has none for it.
      const response = await fetch(`${BASE}/metrics`, { redirect: 'error', signal });
      if (response.ok) setNow(readMetrics(await response.text()));
    };
    const again = () => {
      ask().catch(() => undefined);
    };
    again();
    const timer = setInterval(again, EVERY_MS);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [me.tenant_id]);
  return now;
}
