/** The types of the API, which the client has. */
export * from '../../client/api-types.ts';
