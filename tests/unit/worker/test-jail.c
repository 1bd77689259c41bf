/* SPDX-License-Identifier: Apache-2.0 */
/* Every line of the jail's table, attacked from inside: by the script, by raw system
 * calls, and by a program that the script executes. Each attack prints "held", or what
 * it got. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker/host.h"
#include "worker/landlock.h"
#include "worker/mounts.h"

#define DISK_BYTES (32 << 20)
#define DISK_INODES 512

static struct host host, uncounted, with_terminals;

static int
start(void **state)
{
	struct host_options options = { .memory_counted = true,
					.disk_bytes = DISK_BYTES,
					.disk_inodes = DISK_INODES };
	int r = host_start(&options, &host);

	(void)state;
	if (r == -EPERM) {
		fprintf(stderr, "user namespaces cannot be made here\n");
		host_stop(&host);
		exit(77);
	}
	options.memory_counted = false;
	if (r == 0)
		r = host_start(&options, &uncounted);
	options.terminals = true;
	if (r == 0)
		r = host_start(&options, &with_terminals);
	return r;
}

static int
stop(void **state)
{
	(void)state;
	host_stop(&with_terminals);
	host_stop(&uncounted);
	host_stop(&host);
	return 0;
}

/* What the attacks share. call() gives a system call's result or -errno. */
static const char prelude[] =
	"import ctypes, errno, os, socket, stat, sys\n"
	"L = ctypes.CDLL(None, use_errno=True)\n"
	"L.syscall.restype = ctypes.c_long\n"
	"def call(nr, *args):\n"
	"    r = L.syscall(ctypes.c_long(nr), *[ctypes.c_long(a) if isinstance(a, int) "
	"else a for a in args])\n"
	"    return -ctypes.get_errno() if r == -1 else r\n"
	"bad = []\n"
	"def refused(what, result, *errors):\n"
	"    if result >= 0 or errors and -result not in errors: bad.append((what, "
	"result))\n"
	"def fails(what, f, *errors):\n"
	"    try: got = f()\n"
	"    except OSError as e:\n"
	"        if errors and e.errno not in errors: bad.append((what, e))\n"
	"    else: bad.append((what, got))\n"
	"def status():\n"
	"    return dict(l.split(':\\t', 1) for l in "
	"open('/proc/self/status').read().splitlines() if ':\\t' in l)\n"
	"EPERM, ENOSYS, ENOENT, EACCES, EROFS = 1, 38, 2, 13, 30\n";

static const char verdict[] = "print('held' if not bad else bad, flush=True)\n";

struct attack {
	const char *on;		/* the line of the table */
	const char *script;
};

static const struct attack attacks[] = {
	{ "namespaces: all seven are its own",
	  "for ns in 'user mnt pid ipc uts cgroup net'.split():\n"
	  "    refused('unshare ' + ns, call(272, {'user': 0x10000000, 'mnt': 0x20000, 'pid': 0x20000000, 'ipc': 0x08000000,\n"
	  "            'uts': 0x04000000, 'cgroup': 0x02000000, 'net': 0x40000000}[ns]), EPERM)\n"
	  "    fd = os.open('/proc/self/ns/' + ns, os.O_RDONLY)\n"
	  "    refused('setns ' + ns, call(308, fd, 0), EPERM)\n"
	  "    refused('NS_GET_PARENT', call(16, fd, 0xb702, 0))\n"
	  "    refused('NS_GET_USERNS', call(16, fd, 0xb701, 0))\n" },
	{ "namespaces: clone and clone3",
	  "for flag in (0x10000000, 0x20000, 0x20000000, 0x08000000, 0x04000000, 0x02000000, 0x40000000):\n"
	  "    r = call(56, flag | 17, 0, 0, 0, 0)\n"
	  "    if r == 0: os._exit(0)\n"
	  "    refused('clone', r)\n"
	  "args = ctypes.create_string_buffer(88)\n"
	  "refused('clone3', call(435, args, 88), ENOSYS)\n" },
	{ "pid: only its own processes",
	  "pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\n"
	  "if len(pids) > 3 or os.getppid() not in (0, 1, 2): bad.append((pids, os.getppid()))\n"
	  "fails('/proc/1/environ', lambda: open('/proc/1/environ').read(1))\n"
	  "fails('/proc/1/mem', lambda: open('/proc/1/mem', 'rb').read(1))\n"
	  "fails('/proc/1/root', lambda: os.listdir('/proc/1/root/'))\n"
	  "fails('/proc/1/fd', lambda: os.listdir('/proc/1/fd'))\n"
	  "refused('process_vm_readv', call(310, 1, 0, 0, 0, 0, 0), EPERM)\n"
	  "refused('ptrace init', call(101, 0x4206, 1, 0, 0), EPERM)\n"
	  "refused('kcmp', call(312, 1, os.getpid(), 0, 0, 0), EPERM)\n" },
	{ "uts: the name stays",
	  "refused('sethostname', call(170, ctypes.create_string_buffer(b'x'), 1), EPERM)\n"
	  "refused('setdomainname', call(171, ctypes.create_string_buffer(b'x'), 1), EPERM)\n"
	  "if socket.gethostname() != 'python': bad.append(socket.gethostname())\n" },
	{ "net: loopback only",
	  "for a in ('10.0.0.1', '169.254.169.254', '8.8.8.8', '192.168.1.1'):\n"
	  "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
	  "    fails(a, lambda: s.connect((a, 53)), errno.ENETUNREACH)\n"
	  "lines = open('/proc/self/net/dev').read().splitlines() if os.path.exists('/proc/self/net/dev') else []\n"
	  "names = [l.split(':')[0].strip() for l in lines[2:]]\n"
	  "if [n for n in names if n not in ('lo', 'sit0', 'tunl0', 'ip6tnl0', 'gre0', 'gretap0', 'erspan0', 'ip_vti0', 'ip6_vti0', 'ip6gre0')]: bad.append(names)\n" },
	/* Data that waits in a socket of netlink is not counted. */
	{ "net: no netlink",
	  "for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):\n"
	  "    for protocol in range(32): fails('netlink %d' % protocol, lambda: socket.socket(16, kind, protocol), EPERM)\n" },
	{ "root: nothing of it can be written",
	  "for d in ('/', '/etc', '/usr', '/usr/bin', '/usr/lib', '/usr/lib/python3', '/dev', '/home', '/var', '/proc', '/root', '/lib', '/bin'):\n"
	  "    fails('write in ' + d, lambda: os.open(d + '/x', os.O_CREAT | os.O_WRONLY, 0o600))\n"
	  "    fails('mkdir in ' + d, lambda: os.mkdir(d + '/y'))\n"
	  "for f in ('/etc/passwd', '/usr/bin/python3', '/etc/hosts', '/usr/bin/env', '/proc/self/exe'):\n"
	  "    fails('open ' + f, lambda: os.open(f, os.O_WRONLY))\n"
	  "    fails('unlink ' + f, lambda: os.unlink(f))\n"
	  "    fails('truncate ' + f, lambda: os.truncate(f, 0))\n"
	  "    if f == '/proc/self/exe': continue\n"
	  "    fails('chmod ' + f, lambda: os.chmod(f, 0o777))\n"
	  "    fails('utime ' + f, lambda: os.utime(f))\n" },
	/* With a single id the sealed copy of the program is the script's own file, but only
	 * to look at: no right to it helps. */
	{ "root: the program's file stays as it is",
	  "try: os.chmod('/proc/self/exe', 0o777)\n"
	  "except OSError: pass\n"
	  "fails('open', lambda: os.open('/proc/self/exe', os.O_RDWR))\n"
	  "fails('truncate', lambda: os.truncate('/proc/self/exe', 0))\n"
	  "if os.getpid() == 2:\n"
	  "    fd = os.open('/proc/self/exe', os.O_RDONLY)\n"
	  "    refused('F_ADD_SEALS', call(72, fd, 1033, 0), EPERM)\n"
	  "    if call(72, fd, 1034) != 0x17: bad.append('seals')\n" },
	{ "root: nothing of the host is there",
	  "for p in ('/etc/shadow', '/root', '/sys', '/boot', '/opt', '/srv', '/media', '/var/lib', '/var/log', '/usr/sbin/init', '/usr/bin/su',\n"
	  "          '/usr/bin/mount', '/usr/bin/passwd', '/etc/ssh', '/etc/sudoers', '/usr/lib/systemd', '/lost+found', '/etc/machine-id', '/usr/local/bin'):\n"
	  "    if os.path.lexists(p): bad.append(p)\n"
	  "if os.listdir('/mnt') != ['data'] or os.readlink('/mnt/data') != '../workspace': bad.append('/mnt')\n"
	  "if list(os.walk('/environment')) != [('/environment', [], [])]: bad.append('/environment')\n"
	  "for line in open('/proc/self/mountinfo'):\n"
	  "    f = line.split()\n"
	  "    if f[4] in ('/run', '/tmp', '/workspace', '/dev/shm'): continue\n"
	  "    o = f[5].split(',')\n"
	  "    if f[4].startswith('/proc'): continue\n"
	  "    if 'ro' not in o or 'nosuid' not in o or 'nodev' not in o and not f[4].startswith('/dev/'): bad.append((f[4], o))\n" },
	{ "root: up from it is nothing",
	  "os.chdir('/')\n"
	  "for _ in range(40): os.chdir('..')\n"
	  "if not os.path.samestat(os.stat('.'), os.stat('/')): bad.append(os.listdir())\n"
	  "refused('chroot', call(161, ctypes.create_string_buffer(b'/tmp')), EPERM)\n"
	  "refused('pivot_root', call(155, ctypes.create_string_buffer(b'/tmp'), ctypes.create_string_buffer(b'/tmp')), EPERM)\n"
	  "refused('open_by_handle_at', call(304, -100, ctypes.create_string_buffer(136), 0), EPERM)\n"
	  "refused('name_to_handle_at', call(303, -100, 0, 0, 0, 0), EPERM)\n" },
	{ "mounts: none are made, changed or taken away",
	  "b = ctypes.create_string_buffer\n"
	  "for fs in (b'tmpfs', b'proc', b'sysfs', b'overlay', b'cgroup2', b'devpts', b'fuse'):\n"
	  "    refused(fs, call(165, b(fs), b(b'/tmp'), b(fs), 0, 0), EPERM)\n"
	  "    refused(fs, call(430, b(fs), 0), EPERM)\n"
	  "refused('bind', call(165, b(b'/usr'), b(b'/tmp'), 0, 4096, 0), EPERM)\n"
	  "refused('remount', call(165, 0, b(b'/usr/lib/python3'), 0, 32 | 4096, 0), EPERM)\n"
	  "for m in (b'/proc', b'/run', b'/tmp', b'/', b'/dev/null'): refused(m, call(166, b(m), 2), EPERM)\n"
	  "refused('open_tree', call(428, -100, b(b'/'), 1), EPERM)\n"
	  "refused('move_mount', call(429, -100, b(b'/usr'), -100, b(b'/tmp'), 0), EPERM)\n"
	  "refused('mount_setattr', call(442, -100, b(b'/'), 0, b(32), 32), EPERM)\n"
	  "refused('fsmount', call(432, 0, 0, 0), EPERM)\n"
	  "refused('statmount', call(457, 0, 0, 0, 0))\n" },
	{ "/tmp and /workspace: nosuid, nodev, and no devices",
	  "for line in open('/proc/self/mountinfo'):\n"
	  "    f = line.split()\n"
	  "    if f[4] in ('/run', '/tmp', '/workspace', '/dev/shm') and not {'nosuid', 'nodev'} <= set(f[5].split(',')): bad.append(f)\n"
	  "for d in ('/tmp', '/workspace', '/dev/shm'):\n"
	  "    fails('mknod', lambda: os.mknod(d + '/null', 0o600 | stat.S_IFCHR, os.makedev(1, 3)), EPERM)\n"
	  "    fails('mknod', lambda: os.mknod(d + '/sda', 0o600 | stat.S_IFBLK, os.makedev(8, 0)), EPERM)\n"
	  "    os.mkfifo(d + '/fifo')\n"
	  "    os.unlink(d + '/fifo')\n" },
	{ "/dev: the five",
	  "want = {'null', 'zero', 'full', 'random', 'urandom', 'fd', 'stdin', 'stdout', 'stderr', 'shm'}\n"
	  "if set(os.listdir('/dev')) != want: bad.append(os.listdir('/dev'))\n"
	  "open('/dev/null', 'w').write('x')\n"
	  "if open('/dev/zero', 'rb').read(2) != b'\\0\\0' or len(open('/dev/urandom', 'rb').read(3)) != 3: bad.append('reads')\n"
	  "fails('/dev/full', lambda: os.write(os.open('/dev/full', os.O_WRONLY), b'x'), errno.ENOSPC)\n"
	  "for p in ('/dev/tty', '/dev/mem', '/dev/kmsg', '/dev/fuse', '/dev/ptmx', '/dev/kvm', '/dev/net/tun'): fails(p, lambda: os.open(p, os.O_RDWR))\n" },
	{ "/proc: processes, and files of the worker's own; nothing of the host",
	  "own = {'cpuinfo', 'diskstats', 'filesystems', 'loadavg', 'meminfo', 'partitions', 'stat', 'swaps', 'uptime', 'vmstat'}\n"
	  "proc = os.stat('/proc').st_dev\n"
	  "listed = {n for n in os.listdir('/proc') if not n.isdigit()} - {'self', 'thread-self'} - own\n"
	  "if listed: bad.append(listed)\n"
	  "for n in ('mounts', 'net'):\n"
	  "    if os.readlink('/proc/' + n) != 'self/' + n or not os.path.exists('/proc/' + n): bad.append(n)\n"
	  "    fails('remove ' + n, lambda: os.unlink('/proc/' + n))\n"
	  "    refused('umount ' + n, call(166, ctypes.create_string_buffer(b'/proc/' + n.encode()), 8))\n"
	  "for n in sorted(own):\n"
	  "    p = '/proc/' + n\n"
	  "    if os.stat(p).st_dev == proc: bad.append((p, 'not covered'))\n"
	  "    fails('write ' + p, lambda: os.open(p, os.O_WRONLY | os.O_CREAT))\n"
	  "    fails('truncate ' + p, lambda: os.truncate(p, 0))\n"
	  "    fails('chmod ' + p, lambda: os.chmod(p, 0o666))\n"
	  "    fails('remove ' + p, lambda: os.unlink(p))\n"
	  "    fails('rename ' + p, lambda: os.rename(p, '/tmp/x'))\n"
	  "    refused('umount ' + p, call(166, ctypes.create_string_buffer(p.encode()), 2))\n"
	  "fd = os.open('/proc/meminfo', os.O_RDONLY)\n"
	  "fails('again', lambda: os.open('/proc/self/fd/%d' % fd, os.O_WRONLY))\n"
	  "fails('link', lambda: os.link('/proc/self/fd/%d' % fd, '/tmp/m', follow_symlinks=True))\n"
	  "if os.path.lexists('/run/meminfo') or os.path.lexists('/run/uptime'): bad.append('/run')\n"
	  "for n in range(3, 256):\n"
	  "    try: to = os.readlink('/proc/self/fd/%d' % n)\n"
	  "    except OSError: continue\n"
	  "    if n != fd and ('meminfo' in to or 'uptime' in to or 'timerfd' in to): bad.append(to)\n"
	  "if 'MemTotal:       524288 kB\\n' not in open('/proc/meminfo').read(): bad.append(open('/proc/meminfo').read())\n"
	  "if sum(l.startswith('processor') for l in open('/proc/cpuinfo')) != len(os.sched_getaffinity(0)): bad.append('cpuinfo')\n"
	  "for w in ('MHz', 'microcode', 'bogomips', 'Serial'):\n"
	  "    if w in open('/proc/cpuinfo').read(): bad.append(w)\n"
	  "for n in ('sys/kernel/core_pattern', 'sys', 'sysrq-trigger', 'sysvipc', 'kcore', 'kallsyms', 'key-users', 'keys', 'kmsg', 'modules', 'timer_list',\n"
	  "          'interrupts', 'version', 'cmdline', 'config.gz', 'pressure', 'pressure/cpu', 'fs', 'bus', 'irq', 'tty', 'driver', 'zoneinfo', 'locks'):\n"
	  "    fails(n, lambda: os.lstat('/proc/' + n), errno.ENOENT)\n"
	  "    fails(n, lambda: os.lstat('/proc/self/../' + n), errno.ENOENT)\n"
	  "fails('mem', lambda: os.open('/proc/1/mem', os.O_RDWR))\n"
	  "fails('uid_map', lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1'))\n"
	  "fails('setgroups', lambda: os.write(os.open('/proc/self/setgroups', os.O_WRONLY), b'allow'))\n"
	  "fails('oom_score_adj', lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-500'))\n" },
	{ "seccomp: what is the kernel's",
	  "for name, nr, args in (('bpf', 321, (0, 0, 0)), ('perf_event_open', 298, (0, 0, -1, -1, 0)), ('keyctl', 250, (0, -4, 1)), ('add_key', 248, (0, 0, 0, 0, -3)),\n"
	  "        ('request_key', 249, (0, 0, 0, 0)), ('init_module', 175, (0, 0, 0)), ('kexec_load', 246, (0, 0, 0, 0)), ('reboot', 169, (0, 0, 0, 0)), ('swapon', 167, (0, 0)),\n"
	  "        ('syslog', 103, (3, 0, 0)), ('acct', 163, (0,)), ('quotactl', 179, (0, 0, 0, 0)), ('settimeofday', 164, (0, 0)), ('clock_settime', 227, (0, 0)),\n"
	  "        ('adjtimex', 159, (0,)), ('fanotify_init', 300, (0, 0)), ('iopl', 172, (3,)), ('seccomp', 317, (1, 0, 0)), ('setgroups', 116, (0, 0)),\n"
	  "        ('process_vm_writev', 311, (1, 0, 0, 0, 0, 0)), ('pidfd_getfd', 438, (0, 0, 0)), ('move_pages', 279, (0, 0, 0, 0, 0, 0)), ('vhangup', 153, ())):\n"
	  "    refused(name, call(nr, *args), EPERM)\n"
	  "for name, nr, args in (('io_uring_setup', 425, (1, 0)), ('io_uring_enter', 426, (0, 0, 0, 0, 0, 0)), ('userfaultfd', 323, (0,)), ('unknown', 600, ()), ('x32 getpid', 0x40000000 | 39, ()),\n"
	  "        ('x32 ptrace', 0x40000000 | 521, (0, 0, 0, 0))):\n"
	  "    refused(name, call(nr, *args), ENOSYS)\n" },
	{ "seccomp: families of sockets",
	  "for family in (*range(3, 10), *range(11, 16), *range(17, 50)): refused('family %d' % family, call(41, family, 2, 0))\n"
	  "for family in (2, 10):\n"
	  "    refused('raw', call(41, family, 3, 255))\n"
	  "    refused('sctp', call(41, family, 1, 132))\n"
	  "    refused('mptcp', call(41, family, 1, 262))\n"
	  "    refused('icmp', call(41, family, 2, 1))\n" },
	{ "seccomp: terminals",
	  "for n in (0x5412, 0x541c, 0x540e, 0x541d, 0x5423, 0x5412 | 1 << 32): refused('ioctl %x' % n, call(16, 0, n, 0), EPERM, ENOSYS)\n"
	  "fails('/dev/tty', lambda: os.open('/dev/tty', os.O_RDWR))\n" },
	{ "seccomp: scheduling and priority",
	  "for p in (1, 2, 6): refused('policy %d' % p, call(144, 0, p, ctypes.byref(ctypes.c_int(50))), EPERM)\n"
	  "refused('sched_setattr', call(314, 0, 0, 0), EPERM)\n"
	  "refused('ioprio_set', call(251, 1, 0, 1 << 13), EPERM)\n"
	  "fails('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))\n"
	  "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))\n" },
	{ "capabilities: none, and no way to get one",
	  "s = status()\n"
	  "for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):\n"
	  "    if int(s[k], 16): bad.append((k, s[k]))\n"
	  "if s['NoNewPrivs'] != '1' or s['Seccomp'] != '2': bad.append((s['NoNewPrivs'], s['Seccomp']))\n"
	  "head = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
	  "data = (ctypes.c_uint32 * 6)(1 << 21, 1 << 21, 0, 0, 0, 0)\n"
	  "refused('capset', call(126, head, data), EPERM)\n"
	  "for option in (24, 28, 8, 47, 35, 22, 0x59616d61): refused('prctl %d' % option, call(157, option, 1, 0, 0, 0))\n" },
	{ "identity: one uid, one gid, no groups",
	  "s = status()\n"
	  "if s['Uid'].split() != ['1000'] * 4 or s['Gid'].split() != ['1000'] * 4 or s['Groups'].strip(): bad.append((s['Uid'], s['Gid'], s['Groups']))\n"
	  "for uid in (0, 1, 33, 65534):\n"
	  "    fails('setuid', lambda: os.setuid(uid))\n"
	  "    fails('setresgid', lambda: os.setresgid(uid, uid, uid))\n"
	  "    fails('chown', lambda: os.chown('/tmp', uid, uid))\n"
	  "fails('setgroups', lambda: os.setgroups([0]))\n"
	  "open('/tmp/s', 'w').close()\n"
	  "os.chmod('/tmp/s', 0o4755)\n" },
	{ "rlimits",
	  "import resource as R\n"
	  "for limit in ((0, 0), (0, 1), (9, 9)): R.setrlimit(R.RLIMIT_CORE, limit)\n"
	  "if R.getrlimit(R.RLIMIT_CORE) != (1, 1): bad.append(('CORE', R.getrlimit(R.RLIMIT_CORE)))\n"
	  "for name, most in (('NOFILE', 1024), ('FSIZE', 32 << 20), ('STACK', 64 << 20), ('MEMLOCK', 65536), ('MSGQUEUE', 0), ('RTPRIO', 0)):\n"
	  "    soft, hard = R.getrlimit(getattr(R, 'RLIMIT_' + name))\n"
	  "    if not 0 <= hard <= most: bad.append((name, soft, hard))\n"
	  "    try: R.setrlimit(getattr(R, 'RLIMIT_' + name), (soft, hard + 1))\n"
	  "    except ValueError: pass\n"
	  "    else: bad.append(name)\n"
	  "fds = []\n"
	  "try:\n"
	  "    for _ in range(2000): fds.append(os.open('/dev/null', os.O_RDONLY))\n"
	  "    bad.append('descriptors')\n"
	  "except OSError as e:\n"
	  "    for fd in fds: os.close(fd)\n" },
	{ "disk: bytes",
	  "import signal\n"
	  "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
	  "n = 0\n"
	  "try:\n"
	  "    for i in range(64):\n"
	  "        f = os.open('%s/%d' % (('/tmp', '/workspace', '/dev/shm', '/run', '/home/python')[i % 5], i), os.O_CREAT | os.O_WRONLY)\n"
	  "        os.posix_fallocate(f, 0, 1 << 20)\n"
	  "        n += 1\n"
	  "except OSError as e:\n"
	  "    if e.errno != errno.ENOSPC: bad.append(e)\n"
	  "if n > 32: bad.append(n)\n"
	  "for i in range(n + 1): os.unlink('%s/%d' % (('/tmp', '/workspace', '/dev/shm', '/run', '/home/python')[i % 5], i))\n" },
	{ "disk: inodes",
	  "n = 0\n"
	  "try:\n"
	  "    while n < 5000:\n"
	  "        os.close(os.open('/tmp/i%d' % n, os.O_CREAT | os.O_WRONLY))\n"
	  "        n += 1\n"
	  "except OSError as e:\n"
	  "    if e.errno != errno.ENOSPC: bad.append(e)\n"
	  "if n >= 512: bad.append(n)\n"
	  "for i in range(n): os.unlink('/tmp/i%d' % i)\n" },
	{ "files: nothing inherited",
	  "fds = sorted(int(f) for f in os.listdir('/proc/self/fd'))\n"
	  "for f in fds:\n"
	  "    try: m = os.fstat(f).st_mode\n"
	  "    except OSError: continue\n"
	  "    if f > 2 and (stat.S_ISREG(m) or stat.S_ISFIFO(m) or stat.S_ISCHR(m)): bad.append((f, oct(m)))\n"
	  "    if f > 2 and stat.S_ISSOCK(m) and (f != 63 or os.get_inheritable(f)): bad.append((f, 'socket'))\n"
	  "for f in (0, 1, 2):\n"
	  "    if os.isatty(f): bad.append(f)\n" },
	{ "environment: nothing of the host's",
	  "for p in ('self', 'thread-self'):\n"
	  "    if b'HOST_SECRET' in open('/proc/%s/environ' % p, 'rb').read(): bad.append(p)\n"
	  "if 'HOST_SECRET' in os.environ or set(os.environ) - {'PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'COLUMNS', 'PYTHONDONTWRITEBYTECODE', 'LC_CTYPE', 'PWD', 'SHLVL', '_', 'OLDPWD'}: bad.append(dict(os.environ))\n" },
};

/* Without a controller, memory that no rlimit counts cannot be allocated. */
static const struct attack when_uncounted[] = {
	{ "memfd_create", "refused('memfd', call(319, ctypes.create_string_buffer(b'x'), 0), ENOSYS)\n" },
	{ "System V", "for nr, args in ((29, (0, 4096, 0o1666)), (64, (0, 1, 0o1666)), (68, (0, 0o1666))): refused(nr, call(nr, *args), ENOSYS)\n" },
};

static void
expect_held(struct host *where, const char *on, const char *script)
{
	struct host_run run = { .script = script };
	struct host_result r;

	host_run(where, &run, &r);
	if (r.end != HOST_DONE || r.done->exit_code != 0 ||
	    strcmp(r.out, "held\n") != 0)
		fail_msg("%s: end %d status 0x%x: %s%s", on, r.end, r.status, r.out,
			 r.err);
	host_result_done(&r);
}

static void
attack(struct host *where, const struct attack *a)
{
	char script[16384];

	snprintf(script, sizeof(script), "%s%s%s", prelude, a->script, verdict);
	expect_held(where, a->on, script);
}

/* The same from a program: nothing is lost across execve. */
static void
attack_from_program(struct host *where, const struct attack *a)
{
	char script[16384];

	snprintf(script, sizeof(script),
		 "import subprocess, sys\nimport os\nopen('/run/attack.py', "
		 "'w').write(%s%s%s%s%s)\n"
		 "r = subprocess.run([sys.executable, '/run/attack.py'], "
		 "capture_output=True, text=True)\n"
		 "print(r.stdout + r.stderr, end='')\n",
		 "r'''", prelude, a->script, verdict, "'''");
	expect_held(where, a->on, script);
}

static void
every_wall_holds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		attack(&host, &attacks[i]);
}

static void
every_wall_holds_across_exec(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		attack_from_program(&host, &attacks[i]);
}

static void
terminals_are_of_the_worker(void **state)
{
	static const struct attack attacks_on_them[] = {
		{ "terminals: its own, and a bounded number",
		  "import fcntl, termios\n"
		  "if set(os.listdir('/dev/pts')) != {'ptmx'}: bad.append(os.listdir('/dev/pts'))\n"
		  "if set(os.listdir('/dev')) - {'null', 'zero', 'full', 'random', 'urandom', 'fd', 'stdin', 'stdout', 'stderr', 'shm', 'pts', 'ptmx', 'tty'}: bad.append(os.listdir('/dev'))\n"
		  "fails('tty', lambda: os.open('/dev/tty', os.O_RDWR), errno.ENXIO)\n"
		  "pairs = [os.openpty() for i in range(16)]\n"
		  "fails('one more', lambda: os.openpty(), errno.ENOSPC)\n"
		  "master, slave = pairs[0]\n"
		  "os.write(master, b'line\\n')\n"
		  "if os.read(slave, 10) != b'line\\n': bad.append('read')\n"
		  "for name, n in (('TIOCSTI', 0x5412), ('TIOCLINUX', 0x541c), ('TIOCCONS', 0x541d), ('TIOCSETD', 0x5423), ('TIOCPKT', 0x5420), ('TIOCEXCL', 0x540c), ('TIOCVHANGUP', 0x5437), ('KDSETLED', 0x4b32)):\n"
		  "    for fd in pairs[0]: refused(name, call(16, fd, n, ctypes.create_string_buffer(b'x\\0\\0\\0\\0\\0\\0')))\n"
		  "fails('mknod', lambda: os.mknod('/tmp/ptmx', 0o600 | stat.S_IFCHR, os.makedev(5, 2)), EPERM)\n"
		  "fails('create', lambda: os.open('/dev/pts/x', os.O_CREAT | os.O_WRONLY))\n" },
		{ "terminals: a session of one's own",
		  "pid, master = os.forkpty()\n"
		  "if pid == 0: os.execvp('sh', ['sh', '-c', 'tty; stty size; echo told > /dev/tty'])\n"
		  "said = b''\n"
		  "try:\n"
		  "    while part := os.read(master, 1000): said += part\n"
		  "except OSError: pass\n"
		  "if said != b'/dev/pts/0\\r\\n0 0\\r\\ntold\\r\\n' or os.waitpid(pid, 0)[1]: bad.append(said)\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(attacks_on_them) / sizeof(attacks_on_them[0]); i++)
		attack(&with_terminals, &attacks_on_them[i]);
}

static void
uncounted_memory_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(when_uncounted) / sizeof(when_uncounted[0]);
	     i++) {
		attack(&uncounted, &when_uncounted[i]);
		attack_from_program(&uncounted, &when_uncounted[i]);
	}
}

/* The wall behind the wall: a descriptor of the host's root slips in. */
static void
landlock_holds_by_itself(void **state)
{
	static const char script[] =
		"import os\nfor p in ('etc/passwd', 'usr/bin/env', 'etc', '.', "
		"'proc/1/status', '../etc/passwd'):\n"
		"    try: print(p, os.open(p, os.O_RDONLY, dir_fd=0))\n"
		"    except PermissionError: pass\n"
		"try: os.execve(os.open('usr/bin/env', os.O_PATH, dir_fd=0), ['env'], "
		"{})\n"
		"except PermissionError: pass\n"
		"print('held')\n";
	struct host_run run = { .script = script };
	struct host_result r;

	(void)state;
	if (host.landlock_abi == 0)
		skip();
	run.input_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(run.input_fd > 0);
	host_run(&host, &run, &r);
	close(run.input_fd);
	if (r.end != HOST_DONE || strcmp(r.out, "held\n") != 0)
		fail_msg("end %d: %s%s", r.end, r.out, r.err);
	host_result_done(&r);
}

/* A wall that the kernel has and that cannot be put up is not gone without. */
static void
without_its_rules_nothing_runs(void **state)
{
	(void)state;
	assert_int_equal(landlock_enter(0, -1), 0);
	if (landlock_abi() == 0)
		skip();
	/* As a worker has it: the kernel asks for it first if there is no right. */
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(landlock_enter(landlock_abi(), -1), -EBADF);
}

/* A name that ends in .gz is not enough: other compressed files are data of programs. */
static void
only_links_to_manual_pages_are_left_out(void **state)
{
	(void)state;
	assert_true(mounts_is_manual_page("/usr/share/man/man1/mawk.1.gz"));
	assert_true(mounts_is_manual_page("/usr/share/man/de/man1/vim.1"));
	assert_false(mounts_is_manual_page("/usr/share/manual/data.gz"));
	assert_false(mounts_is_manual_page("/usr/share/fonts/font.pcf.gz"));
	assert_false(mounts_is_manual_page("../certs/list.gz"));
	assert_false(mounts_is_manual_page("/usr/bin/mawk"));
	assert_false(mounts_is_manual_page(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wall_holds),
		cmocka_unit_test(every_wall_holds_across_exec),
		cmocka_unit_test(uncounted_memory_is_refused),
		cmocka_unit_test(terminals_are_of_the_worker),
		cmocka_unit_test(landlock_holds_by_itself),
		cmocka_unit_test(without_its_rules_nothing_runs),
		cmocka_unit_test(only_links_to_manual_pages_are_left_out),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
