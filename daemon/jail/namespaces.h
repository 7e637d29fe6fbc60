/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "jail/failure.h"

/* New mount (private), network, IPC and UTS namespaces for this process, and a PID namespace for its next child. */
int namespaces_enter(Failure *reterr);

/* Later, once the process is in its scope: the scope's cgroup becomes the root of what can be seen. */
int namespaces_enter_cgroup(Failure *reterr);
