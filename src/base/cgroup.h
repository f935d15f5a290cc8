/* How much processor time and memory the control groups of Linux grant this process.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_CGROUP_H
#define LS_BASE_CGROUP_H

/* The smallest CPU quota, in cores (1.5 is 150 %), over this process's control group and all
 * those around it, version 1 and 2; 0 when there is none. The two files are those of Linux
 * ("/proc/self/cgroup", "/proc/self/mountinfo") unless a test has its own. */
double ls_cgroup_quota(const char *cgroup_file, const char *mountinfo_file);
/* The smallest limit on memory likewise, in bytes; 0 when there is none. */
double ls_cgroup_memory(const char *cgroup_file, const char *mountinfo_file);
/* That of this process. */
double ls_memory_limit(void);

#endif
