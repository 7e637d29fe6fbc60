/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Who the jailed process is. Both halves come through here: QEMU, and the outer half that waits for it. Order matters: the bounding
 * set goes while CAP_SETPCAP is there, groups go before the uid, and nothing is believed until it has been read back.
 */
#include "jail/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "jail/options.h"

#define CAPABILITY_MAX 64 /* as many as _LINUX_CAPABILITY_VERSION_3 has room for */

/* A set of 64 bits is two elements of it. */
typedef struct __user_cap_data_struct CapabilityData;

static const struct rlimit_entry {
        __rlimit_resource_t resource;
        rlim_t value;
        const char *name;
} limits
        [] =
                {
                        {RLIMIT_CORE,     0,                "core"    }, /* a dump would hold the guest's memory */
                        {RLIMIT_NOFILE,   256,              "nofile"  },
                        {RLIMIT_FSIZE,    16 * 1024 * 1024, "fsize"   }, /* all it can write to are memfds of the manager */
                        {RLIMIT_NPROC,    128,              "nproc"   }, /* threads: 64 block workers, the CPUs, the loops */
                        {RLIMIT_MEMLOCK,  0,                "memlock" },
                        {RLIMIT_MSGQUEUE, 0,                "msgqueue"},
                        {RLIMIT_NICE,     0,                "nice"    },
                        {RLIMIT_RTPRIO,   0,                "rtprio"  },
};

static int capability_set(CapabilityData data[2]) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int capability_get(CapabilityData data[2]) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

        return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

static int drop_bounding(Failure *reterr) {
        for (unsigned long cap = 0; cap < CAPABILITY_MAX; cap++) {
                int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

                if (has < 0) /* the kernel knows no more */
                        break;
                if (has > 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
                        return failure_set(reterr, -errno, "dropping capability %lu from the bounding set", cap);
        }
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "clearing the ambient capabilities");
        return 0;
}

static int lock_securebits(Failure *reterr) {
        unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                             SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED |
                             SECBIT_NO_SETUID_FIXUP_LOCKED;

        if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "locking securebits");
        return 0;
}

static int set_ids(const Identity *i, Failure *reterr) {
        if (setgroups(i->extra_gid != 0 ? 1 : 0, &i->extra_gid) < 0)
                return failure_set(reterr, -errno, "setting the groups");
        if (setresgid(i->gid, i->gid, i->gid) < 0)
                return failure_set(reterr, -errno, "becoming gid %u", i->gid);
        if (setresuid(i->uid, i->uid, i->uid) < 0)
                return failure_set(reterr, -errno, "becoming uid %u", i->uid);
        return 0;
}

static int verify_ids(const Identity *i, Failure *reterr) {
        uid_t ruid, euid, suid;
        gid_t rgid, egid, sgid, groups[2];
        int n_groups = getgroups(ELEMENTSOF(groups), groups);

        if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0 || n_groups < 0)
                return failure_set(reterr, -errno, "reading the ids back");
        if (ruid != i->uid || euid != i->uid || suid != i->uid)
                return failure_set(reterr, -EPERM, "uid is %u:%u:%u after becoming %u", ruid, euid, suid, i->uid);
        if (rgid != i->gid || egid != i->gid || sgid != i->gid)
                return failure_set(reterr, -EPERM, "gid is %u:%u:%u after becoming %u", rgid, egid, sgid, i->gid);
        if (n_groups != (i->extra_gid != 0 ? 1 : 0) || (n_groups == 1 && groups[0] != i->extra_gid))
                return failure_set(reterr, -EPERM, "%d groups are left", n_groups);
        if (setuid(0) == 0)
                return failure_set(reterr, -EPERM, "root could be had back");
        return 0;
}

static int verify_capabilities(Failure *reterr) {
        CapabilityData data[2];
        int r = capability_get(data);

        if (r < 0)
                return failure_set(reterr, r, "reading the capabilities back");
        for (size_t i = 0; i < ELEMENTSOF(data); i++)
                if (data[i].effective | data[i].permitted | data[i].inheritable)
                        return failure_set(reterr, -EPERM, "capabilities are left");
        for (unsigned long cap = 0; cap < CAPABILITY_MAX; cap++)
                if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) > 0)
                        return failure_set(reterr, -EPERM, "capability %lu is left in the bounding set", cap);
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return failure_set(reterr, -EPERM, "no_new_privs is not set");
        return 0;
}

int identity_assume(const Identity *identity, Failure *reterr) {
        CapabilityData none[2] = {0};
        int r;

        if (identity->uid < OPTIONS_UID_MIN || identity->gid < OPTIONS_UID_MIN)
                return failure_set(reterr, -EPERM, "uid %u and gid %u belong to the machine, not to a run",
                                   identity->uid, identity->gid);
        r = drop_bounding(reterr);
        if (r < 0)
                return r;
        r = lock_securebits(reterr);
        if (r < 0)
                return r;
        r = set_ids(identity, reterr);
        if (r < 0)
                return r;
        r = capability_set(none);
        if (r < 0)
                return failure_set(reterr, r, "dropping the capabilities");
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return failure_set(reterr, -errno, "no_new_privs");
        r = verify_ids(identity, reterr);
        if (r < 0)
                return r;
        return verify_capabilities(reterr);
}

int identity_limit(Failure *reterr) {
        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                struct rlimit value = {limits[i].value, limits[i].value}, now;

                if (getrlimit(limits[i].resource, &now) < 0)
                        return failure_set(reterr, -errno, "reading the limit %s", limits[i].name);
                if (now.rlim_max < value.rlim_max) /* narrower already: stays so, CAP_SYS_RESOURCE may be missing */
                        value = (struct rlimit){now.rlim_max, now.rlim_max};
                if (setrlimit(limits[i].resource, &value) < 0)
                        return failure_set(reterr, -errno, "setting the limit %s", limits[i].name);
        }
        return 0;
}
