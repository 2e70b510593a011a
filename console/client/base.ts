/** The path below which the service is served, such as `/signalbox`; empty at the root of a host. */
// The scripts are in the folder console/ of the service.
export const BASE = new URL('..', import.meta.url).pathname.slice(0, -1);
