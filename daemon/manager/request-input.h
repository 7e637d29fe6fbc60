/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* `input` of a command, and what a command and its request share. A part of request.c. */

#include "common/json.h"
#include "manager/request.h"

/* Fills argv, env, script and stdin of the request from root's `input`. 0, or the reader's error. */
int request_read_input(JsonReader *reader, json_object *root, Request *request);

/* Adds `input`, every default filled in, to the accepted request. 0 or -ENOMEM. */
int request_add_input(const Request *request, json_object *accepted);

/* The members of an object, all strings, checked one by one, as names and values sorted by name. */
typedef int (*RequestCheckPair)(
        JsonReader *reader, json_object *value, const char *path, const char *name, const char *text);
typedef struct RequestPairs {
        const char *path;
        size_t max;       /* members */
        size_t size_max;  /* bytes of a value */
        const char *cure; /* what to do with more members than max */
        RequestCheckPair check;
} RequestPairs;

/* *ret: name, value, name, value, …, NULL; the strings are borrowed from root, the array is the caller's to free. Empty when
 * root has no such object. 0, or the reader's error. */
int request_read_pairs(JsonReader *reader, json_object *root, const RequestPairs *pairs, const char ***ret);
