/** The client of Signalbox, for Node and browsers. */
export * from './api-types.ts';
export {
  type Answer,
  type Asked,
  addressOf,
  type BodyOf,
  type Call,
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type LooselyAsked,
  type ParamsOf,
  type QueryOf,
  type ResponseOf,
  type Result,
} from './client.ts';
export { errorOf, SignalboxError } from './errors.ts';
export type { Frame, StreamOptions, StreamState } from './stream.ts';
