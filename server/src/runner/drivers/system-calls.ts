// The system calls of lobbies: those that container engines allow by default, without namespaces, mounts, keyrings, NUMA
// policies, clocks and access to the memory of other processes. seccomp.ts makes a filter of them.

/** Each entry is a name and its number on x86_64, on 32-bit x86 and on arm64; `-` where it does not exist. */
const TABLE = [
  '_llseek - 140 -; _newselect - 142 -; accept 43 - 202; accept4 288 364 242; access 21 33 -; adjtimex 159 124 171',
  'alarm 37 27 -; arch_prctl 158 384 -; bind 49 361 200; brk 12 45 214; capget 125 184 90; capset 126 185 91',
  'chdir 80 12 49; chmod 90 15 -; chown 92 182 -; chown32 - 212 -; clock_adjtime 305 343 266',
  'clock_adjtime64 - 405 405; clock_getres 229 266 114; clock_getres_time64 - 406 406; clock_gettime 228 265 113',
  'clock_gettime64 - 403 403; clock_nanosleep 230 267 115; clock_nanosleep_time64 - 407 407; close 3 6 57',
  'close_range 436 436 436; connect 42 362 203; copy_file_range 326 377 285; creat 85 8 -; dup 32 41 23',
  'dup2 33 63 -; dup3 292 330 24; epoll_create 213 254 -; epoll_create1 291 329 20; epoll_ctl 233 255 21',
  'epoll_ctl_old 214 - -; epoll_pwait 281 319 22; epoll_pwait2 441 441 441; epoll_wait 232 256 -',
  'epoll_wait_old 215 - -; eventfd 284 323 -; eventfd2 290 328 19; execve 59 11 221; execveat 322 358 281',
  'exit 60 1 93; exit_group 231 252 94; faccessat 269 307 48; faccessat2 439 439 439; fadvise64 221 250 223',
  'fadvise64_64 - 272 -; fallocate 285 324 47; fchdir 81 133 50; fchmod 91 94 52; fchmodat 268 306 53',
  'fchown 93 95 55; fchown32 - 207 -; fchownat 260 298 54; fcntl 72 55 25; fcntl64 - 221 -; fdatasync 75 148 83',
  'fgetxattr 193 231 10; flistxattr 196 234 13; flock 73 143 32; fork 57 2 -; fremovexattr 199 237 16',
  'fsetxattr 190 228 7; fstat 5 108 80; fstat64 - 197 -; fstatat64 - 300 -; fstatfs 138 100 44; fstatfs64 - 269 -',
  'fsync 74 118 82; ftruncate 77 93 46; ftruncate64 - 194 -; futex 202 240 98; futex_time64 - 422 422',
  'futimesat 261 299 -; get_robust_list 274 312 100; get_thread_area 211 244 -; getcpu 309 318 168',
  'getcwd 79 183 17; getdents 78 141 -; getdents64 217 220 61; getegid 108 50 177; getegid32 - 202 -',
  'geteuid 107 49 175; geteuid32 - 201 -; getgid 104 47 176; getgid32 - 200 -; getgroups 115 80 158',
  'getgroups32 - 205 -; getitimer 36 105 102; getpeername 52 368 205; getpgid 121 132 155; getpgrp 111 65 -',
  'getpid 39 20 172; getppid 110 64 173; getpriority 140 96 141; getrandom 318 355 278; getresgid 120 171 150',
  'getresgid32 - 211 -; getresuid 118 165 148; getresuid32 - 209 -; getrlimit 97 76 163; getrusage 98 77 165',
  'getsid 124 147 156; getsockname 51 367 204; getsockopt 55 365 209; gettid 186 224 178; gettimeofday 96 78 169',
  'getuid 102 24 174; getuid32 - 199 -; getxattr 191 229 8; inotify_add_watch 254 292 27; inotify_init 253 291 -',
  'inotify_init1 294 332 26; inotify_rm_watch 255 293 28; io_cancel 210 249 3; io_destroy 207 246 1',
  'io_getevents 208 247 4; io_setup 206 245 0; io_submit 209 248 2; ioctl 16 54 29; ioprio_get 252 290 31',
  'ioprio_set 251 289 30; ipc - 117 -; kill 62 37 129; landlock_add_rule 445 445 445',
  'landlock_create_ruleset 444 444 444; landlock_restrict_self 446 446 446; lchown 94 16 -; lchown32 - 198 -',
  'lgetxattr 192 230 9; link 86 9 -; linkat 265 303 37; listen 50 363 201; listxattr 194 232 11',
  'llistxattr 195 233 12; lremovexattr 198 236 15; lseek 8 19 62; lsetxattr 189 227 6; lstat 6 107 -',
  'lstat64 - 196 -; madvise 28 219 233; membarrier 324 375 283; memfd_create 319 356 279; memfd_secret 447 447 447',
  'mincore 27 218 232; mkdir 83 39 -; mkdirat 258 296 34; mknod 133 14 -; mknodat 259 297 33; mlock 149 150 228',
  'mlock2 325 376 284; mlockall 151 152 230; mmap 9 90 222; mmap2 - 192 -; modify_ldt 154 123 -',
  'mprotect 10 125 226; mq_getsetattr 245 282 185; mq_notify 244 281 184; mq_open 240 277 180',
  'mq_timedreceive 243 280 183; mq_timedreceive_time64 - 419 419; mq_timedsend 242 279 182',
  'mq_timedsend_time64 - 418 418; mq_unlink 241 278 181; mremap 25 163 216; msgctl 71 402 187; msgget 68 399 186',
  'msgrcv 70 401 188; msgsnd 69 400 189; msync 26 144 227; munlock 150 151 229; munlockall 152 153 231',
  'munmap 11 91 215; nanosleep 35 162 101; newfstatat 262 - -; open 2 5 -; openat 257 295 56; openat2 437 437 437',
  'pause 34 29 -; pidfd_open 434 434 434; pidfd_send_signal 424 424 424; pipe 22 42 -; pipe2 293 331 59',
  'pkey_alloc 330 381 289; pkey_free 331 382 290; pkey_mprotect 329 380 288; poll 7 168 -; ppoll 271 309 73',
  'ppoll_time64 - 414 414; prctl 157 172 167; pread64 17 180 67; preadv 295 333 69; preadv2 327 378 286',
  'prlimit64 302 340 261; pselect6 270 308 72; pselect6_time64 - 413 413; ptrace 101 26 117; pwrite64 18 181 68',
  'pwritev 296 334 70; pwritev2 328 379 287; read 0 3 63; readahead 187 225 213; readdir - 89 -; readlink 89 85 -',
  'readlinkat 267 305 78; readv 19 145 65; recvfrom 45 371 207; recvmmsg 299 337 243; recvmmsg_time64 - 417 417',
  'recvmsg 47 372 212; remap_file_pages 216 257 234; removexattr 197 235 14; rename 82 38 -; renameat 264 302 38',
  'renameat2 316 353 276; restart_syscall 219 0 128; rmdir 84 40 -; rseq 334 386 293; rt_sigaction 13 174 134',
  'rt_sigpending 127 176 136; rt_sigprocmask 14 175 135; rt_sigqueueinfo 129 178 138; rt_sigreturn 15 173 139',
  'rt_sigsuspend 130 179 133; rt_sigtimedwait 128 177 137; rt_sigtimedwait_time64 - 421 421',
  'rt_tgsigqueueinfo 297 335 240; sched_get_priority_max 146 159 125; sched_get_priority_min 147 160 126',
  'sched_getaffinity 204 242 123; sched_getattr 315 352 275; sched_getparam 143 155 121',
  'sched_getscheduler 145 157 120; sched_rr_get_interval 148 161 127; sched_rr_get_interval_time64 - 423 423',
  'sched_setaffinity 203 241 122; sched_setattr 314 351 274; sched_setparam 142 154 118',
  'sched_setscheduler 144 156 119; sched_yield 24 158 124; seccomp 317 354 277; select 23 82 -; semctl 66 394 191',
  'semget 64 393 190; semop 65 - 193; semtimedop 220 - 192; semtimedop_time64 - 420 420; sendfile 40 187 71',
  'sendfile64 - 239 -; sendmmsg 307 345 269; sendmsg 46 370 211; sendto 44 369 206; set_robust_list 273 311 99',
  'set_thread_area 205 243 -; set_tid_address 218 258 96; setfsgid 123 139 152; setfsgid32 - 216 -',
  'setfsuid 122 138 151; setfsuid32 - 215 -; setgid 106 46 144; setgid32 - 214 -; setgroups 116 81 159',
  'setgroups32 - 206 -; setitimer 38 104 103; setpgid 109 57 154; setpriority 141 97 140; setregid 114 71 143',
  'setregid32 - 204 -; setresgid 119 170 149; setresgid32 - 210 -; setresuid 117 164 147; setresuid32 - 208 -',
  'setreuid 113 70 145; setreuid32 - 203 -; setrlimit 160 75 164; setsid 112 66 157; setsockopt 54 366 208',
  'setuid 105 23 146; setuid32 - 213 -; setxattr 188 226 5; shmat 30 397 196; shmctl 31 396 195; shmdt 67 398 197',
  'shmget 29 395 194; shutdown 48 373 210; sigaction - 67 -; sigaltstack 131 186 132; signal - 48 -',
  'signalfd 282 321 -; signalfd4 289 327 74; sigpending - 73 -; sigprocmask - 126 -; sigreturn - 119 -',
  'sigsuspend - 72 -; socketcall - 102 -; socketpair 53 360 199; splice 275 313 76; stat 4 106 -; stat64 - 195 -',
  'statfs 137 99 43; statfs64 - 268 -; statx 332 383 291; symlink 88 83 -; symlinkat 266 304 36; sync 162 36 81',
  'sync_file_range 277 314 84; sync_file_range2 - - 84; syncfs 306 344 267; sysinfo 99 116 179; tee 276 315 77',
  'tgkill 234 270 131; time 201 13 -; timer_create 222 259 107; timer_delete 226 263 111',
  'timer_getoverrun 225 262 109; timer_gettime 224 261 108; timer_gettime64 - 408 408; timer_settime 223 260 110',
  'timer_settime64 - 409 409; timerfd_create 283 322 85; timerfd_gettime 287 326 87; timerfd_gettime64 - 410 410',
  'timerfd_settime 286 325 86; timerfd_settime64 - 411 411; times 100 43 153; tkill 200 238 130; truncate 76 92 45',
  'truncate64 - 193 -; ugetrlimit - 191 -; umask 95 60 166; uname 63 122 160; unlink 87 10 -; unlinkat 263 301 35',
  'utime 132 30 -; utimensat 280 320 88; utimensat_time64 - 412 412; utimes 235 271 -; vfork 58 190 -',
  'wait4 61 114 260; waitid 247 284 95; waitpid - 7 -; write 1 4 64; writev 20 146 66',
]

export type Architecture = 'x86_64' | 'x86' | 'arm64'
const COLUMNS: Readonly<Record<Architecture, number>> = { x86_64: 1, x86: 2, arm64: 3 }

/** Calls that depend on their first argument, or that have a refusal of their own. */
export type SpecialCall = 'clone' | 'clone3' | 'personality' | 'socket'
export const SPECIAL_CALLS: Readonly<Record<Architecture, Readonly<Record<SpecialCall, number>>>> = {
  x86_64: { clone: 56, clone3: 435, personality: 135, socket: 41 },
  x86: { clone: 120, clone3: 435, personality: 136, socket: 359 },
  arm64: { clone: 220, clone3: 435, personality: 92, socket: 198 },
}

const ENTRIES = TABLE.flatMap((line) => line.split('; ')).map((entry) => entry.split(' '))

/** The names of all calls that are always allowed on one of the machines. */
export const ALLOWED_NAMES: readonly string[] = ENTRIES.map(([name = '']) => name)

/** The numbers of all calls that are always allowed, ascending. */
export function allowedCalls(machine: Architecture): number[] {
  const numbers = ENTRIES.flatMap((entry) => {
    const number = entry[COLUMNS[machine]]
    return number === undefined || number === '-' ? [] : Number(number)
  })
  return [...new Set(numbers)].sort((one, other) => one - other)
}
