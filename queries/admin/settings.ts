/** Settings of the deployment: stored values, and the defaults of the others. */
import { settingsProjection } from '../../projections/admin/settings.ts';
import {
  CUSTOM,
  KNOWN_SETTINGS,
  knownSetting,
  type SettingDefaults,
  type SettingName,
  type SettingResponse,
} from '../../shared/contract/admin/settings.ts';
import { type Reads, tables } from '../reads.ts';

const stored = (reads: Reads) => tables(reads, settingsProjection).selectFrom('settings');

/** All settings, by category and name; those that the service knows come first. */
export async function listSettings(reads: Reads, defaults: SettingDefaults) {
  const rows = new Map((await stored(reads).selectAll().orderBy('name').execute()).map((row) => [row.name, row]));
  const settings = [...new Set([...Object.keys(KNOWN_SETTINGS), ...rows.keys()])].map((key): SettingResponse => {
    const row = rows.get(key);
    const known = knownSetting(key);
    return {
      key,
      value: row?.value ?? known?.initial(defaults) ?? '',
      description: known?.description ?? '',
      category: known?.category ?? CUSTOM,
      updated_by: row?.updated_by ?? null,
      updated_at: row?.updated_at ?? null,
      is_default: row === undefined,
    };
  });
  const grouped: Record<string, SettingResponse[]> = {};
  for (const one of settings) {
    grouped[one.category] ??= [];
    grouped[one.category]?.push(one);
  }
  return { settings, grouped };
}

/** The current values of settings that the service knows. */
export async function settingValues<N extends SettingName>(
  reads: Reads,
  defaults: SettingDefaults,
  names: readonly N[],
): Promise<Readonly<Record<N, string>>> {
  const rows = await stored(reads).select(['name', 'value']).where('name', 'in', names).execute();
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    names.map((name) => [name, values.get(name) ?? KNOWN_SETTINGS[name].initial(defaults)]),
  ) as Record<N, string>;
}
