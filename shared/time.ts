/** Time units of the contract: records have whole Unix seconds, stream frames and metadata milliseconds. */

/** Unix milliseconds to whole Unix seconds, the unit of every record field. */
export const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);

/** Seconds in a minute, hour and day, for windows and retention. */
export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86_400;
