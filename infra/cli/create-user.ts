/** `signalbox create-user`: creates a user; for operators with access to the machine. */
import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { createUser } from '../../commands/auth/registration.ts';
import { NEW_USER } from '../../commands/auth/users.ts';
import { newUserBody } from '../../shared/contract/auth/users.ts';
import { ROLES } from '../../shared/identity.ts';
import { box } from './start.ts';
import { cliContext, withCore } from './with-core.ts';

interface Options {
  readonly username: string;
  readonly role: string;
  readonly displayName?: string;
  readonly email?: string;
  readonly passwordStdin?: boolean;
}

export function addCreateUser(program: Command): void {
  program
    .command('create-user')
    .description('create a user with a password')
    .requiredOption('--username <name>', 'name to log in with')
    .addOption(new Option('--role <role>', 'what the user may do').choices(ROLES).makeOptionMandatory())
    .option('--display-name <text>', 'name to show; the username by default')
    .option('--email <address>', 'e-mail address')
    .option('--password-stdin', 'read the password from standard input; otherwise one is generated and shown once')
    .action(async (options: Options) => {
      const generated = options.passwordStdin ? undefined : randomBytes(18).toString('base64url');
      const password = generated ?? (await text(process.stdin)).replace(/\r?\n$/, '');
      const user = newUserBody.safeParse({
        username: options.username,
        password,
        role: options.role,
        ...(options.displayName !== undefined && { display_name: options.displayName }),
        ...(options.email !== undefined && { email: options.email }),
      });
      if (!user.success) {
        throw new Error(user.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '));
      }
      const { username, display_name, email, role } = user.data;
      const id = await withCore(
        (core) =>
          createUser(
            core.commands,
            cliContext(),
            core.credentials,
            {
              ...NEW_USER,
              username,
              display_name: display_name?.trim() || username,
              email: email?.trim() || null,
              role,
              source: 'cli',
            },
            password,
          ),
        { create: true, project: true },
      );
      if (generated)
        console.log(
          box([`User:     ${username} (id ${id}, ${role})`, `Password: ${generated}`, '', 'Shown only once.']),
        );
      else console.log(`Created user ${username} (id ${id}, ${role}).`);
    });
}
