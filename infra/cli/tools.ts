/** Every command except `start`. */
import type { Command } from 'commander';
import { addArchive } from './archive.ts';
import { addCopyLog } from './copy-log.ts';
import { addCreateUser } from './create-user.ts';
import { addDiff } from './diff.ts';
import { addErasePerson } from './erase-person.ts';
import { addExportEvents } from './export-events.ts';
import { registerJobs } from './jobs.ts';
import { addMcp } from './mcp.ts';
import { addPrepare, addRebuild } from './rebuild.ts';
import { addReplay } from './replay.ts';
import { addRestore } from './restore.ts';
import { addStatus } from './status.ts';
import { addVerify } from './verify.ts';

export function addTools(program: Command): void {
  addStatus(program);
  addDiff(program);
  addPrepare(program);
  addRebuild(program);
  addReplay(program);
  addCreateUser(program);
  addErasePerson(program);
  addExportEvents(program);
  addArchive(program);
  addCopyLog(program);
  addRestore(program);
  addVerify(program);
  registerJobs(program);
  addMcp(program);
}
