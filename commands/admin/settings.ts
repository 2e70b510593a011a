/** Settings of the deployment: change and reset. */
import { conflict, notFound } from '../../shared/errors.ts';
import { settingReset, settingsUpdated } from '../../shared/events/admin/settings.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { defineDecider, on } from '../decider.ts';

/** Values that differ from the default, by name. */
export type SettingsState = Readonly<Record<string, string>>;

/** Maximum number of stored settings; the service has fewer, but clients may add their own. */
export const MAX_SETTINGS = 500;

export const settingsDecider = defineDecider<SettingsState>({
  kind: 'setting',
  initial: {},
  sizeOf: (state) => JSON.stringify(state).length,
  folds: [
    on(settingsUpdated, (state, { data }) => ({
      ...state,
      ...Object.fromEntries(data.changes.map(({ name, value }) => [name, value])),
    })),
    on(settingReset, (state, { data }) =>
      Object.fromEntries(Object.entries(state).filter(([name]) => name !== data.name)),
    ),
  ],
});

const storedIn = (state: SettingsState, name: string): string | null =>
  Object.hasOwn(state, name) ? (state[name] ?? null) : null;

/** No event when all settings already have these values. @throws AppError 409 when there are too many */
export function decideSettings(
  state: SettingsState,
  settings: readonly { readonly name: string; readonly value: string }[],
): EventDraft[] {
  const changes = settings
    .map(({ name, value }) => ({ name, old: storedIn(state, name), value }))
    .filter(({ old, value }) => old !== value);
  if (changes.length === 0) return [];
  if (Object.keys(state).length + changes.filter(({ old }) => old === null).length > MAX_SETTINGS) {
    throw conflict(`At most ${MAX_SETTINGS} settings can be stored; delete some first.`);
  }
  return [settingsUpdated.draft({ changes })];
}

/** @throws AppError 404 when it is not stored */
export function decideReset(state: SettingsState, name: string): EventDraft[] {
  const old = storedIn(state, name);
  if (old === null) throw notFound('Setting');
  return [settingReset.draft({ name, old })];
}
