/** The erasure of people. */
import { z } from 'zod';
import { idText } from '../common.ts';

export const personParams = z.object({ username: z.string().normalize('NFC') });
export const personQuery = z.object({
  id: idText
    .optional()
    .describe('id of the user; needed only if several users who were deleted had this name one after another'),
});
export const erasedResponse = z.object({
  success: z.literal(true),
  user_id: z.int().describe('The user who was deleted and erased; its events name this id.'),
  access_request_ids: z.array(z.int()).describe('Access requests of the same person, erased as well.'),
});
