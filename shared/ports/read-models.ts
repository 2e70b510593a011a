/** What commands and the API need to know about read models: how far they have got. */
import type { DomainEvent } from '../events/define.ts';
import type { Position } from './event-log.ts';

export interface ReadModels {
  /**
   * Resolves when every read model that listens to one of these event types has reached `position`.
   *
   * @throws AppError 503 `READ_MODEL_BEHIND` when that takes longer than the configured time-out. The event is in the
   *   log nevertheless.
   */
  visible(eventTypes: readonly string[], position: Position): Promise<void>;
  /**
   * Resolves when a command that appended events of these types, the last of them at `position`, may be answered: whoever
   * reads from then on sees them. Either the read models show them already, as after `visible`, or reads wait until they do.
   *
   * @param events the events themselves, if this process has appended them
   * @throws as `visible`
   */
  promise(eventTypes: readonly string[], position: Position, events?: readonly DomainEvent[]): Promise<void>;
}
