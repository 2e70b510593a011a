/** Drafts as the events that a projection or a decider is told. */
import type { DomainEvent, EventDraft } from '../../shared/events/define.ts';

/** Events as a projection gets them: number and position count from 1, a second passes with each. */
export const told = (...drafts: readonly EventDraft<string, object>[]): DomainEvent[] =>
  drafts.map(({ type, data }, index) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    type,
    data: data as DomainEvent['data'],
    meta: {
      version: 1,
      number: index + 1,
      at: 1_700_000_000_000 + (index + 1) * 1_000,
      tenant: 1,
      workspace: 1,
      actor: { type: 'user', id: 1, name: 'admin' },
      ip: null,
      userAgent: null,
      requestId: null,
      correlationId: 'c',
      causationId: null,
    },
    stream: 's',
    revision: index,
    position: index + 1,
  }));
