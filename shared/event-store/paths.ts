/** Values in event data, by dotted paths. */

type Data = Readonly<Record<string, unknown>>;

/** The value at a path; undefined if there is none. */
export function valueAt(data: Data, path: string): unknown {
  let value: unknown = data;
  for (const key of path.split('.')) value = (value as Data | null | undefined)?.[key];
  return value;
}

/** A copy with another value at a path, where there is one. */
export function withValueAt(data: Data, path: string, value: unknown): Data {
  const dot = path.indexOf('.');
  if (dot < 0) return { ...data, [path]: value };
  const head = path.slice(0, dot);
  return { ...data, [head]: withValueAt(data[head] as Data, path.slice(dot + 1), value) };
}
