/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Loads the modules that the file names, one path a line, in that order, and removes them and the list: the initrd is RAM.
 * 0, or -errno with the reason logged. */
int modules_load(const char *list_path);
