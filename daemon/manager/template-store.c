/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Templates on disk. A save writes into a directory whose name begins with a dot, then renames it; nothing is synced, since after a
 * power cut the digests tell a whole file from half a one, and a template is made again faster than a disk is searched.
 */
#include "manager/template-store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/json.h"

enum {
        META_SIZE_MAX = 16 * 1024,
        STORE_ENTRIES_MAX = 256,
        MEMORY_MIB_MAX = 1024 * 1024,
        STATE_SIZE_MAX = 64 * 1024 * 1024,
};

typedef struct MetaText {
        const char *key;
        size_t offset, size;
} MetaText;

typedef struct MetaNumber {
        const char *key;
        size_t offset;
        uint64_t max;
} MetaNumber;

#define TEXT(member)                                                                                                  \
        { #member, offsetof(TemplateMeta, member), sizeof(((TemplateMeta *) NULL)->member) }
#define NUMBER(member, max)                                                                                           \
        { #member, offsetof(TemplateMeta, member), max }

static const MetaText texts[] = {TEXT(key),    TEXT(image),      TEXT(image_digest),
                                 TEXT(kernel), TEXT(ram_digest), TEXT(state_digest)};
static const MetaNumber numbers[] = {
        NUMBER(vcpus, 4096),         NUMBER(memory_mib, MEMORY_MIB_MAX), NUMBER(disk_mib, MEMORY_MIB_MAX),
        NUMBER(tsc_khz, UINT32_MAX), NUMBER(created_usec, INT64_MAX),    NUMBER(used_bytes, INT64_MAX)};

/* ---- meta.json ---- */

static json_object *meta_to_json(const TemplateMeta *meta) {
        json_object *o = json_object_new_object();

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                json_add_string(o, texts[i].key, (const char *) meta + texts[i].offset);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                json_add_u64(o, numbers[i].key, *(const uint64_t *) ((const char *) meta + numbers[i].offset));
        json_add_bool(o, "kvm", meta->kvm);
        return o;
}

static int meta_from_json(json_object *o, TemplateMeta *ret) {
        JsonReader reader = {.what = "key"};
        TemplateMeta meta = {0};
        int r = json_read_root(&reader, o);

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(texts); i++) {
                const char *text;

                r = json_read_string(&reader, o, texts[i].key, texts[i].size - 1, &text);
                if (r > 0)
                        (void) snprintf((char *) &meta + texts[i].offset, texts[i].size, "%s", text);
                r = r == 0 ? -EBADMSG : r;
        }
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(numbers); i++) {
                r = json_read_u64(&reader, o, numbers[i].key, 0, numbers[i].max,
                                  (uint64_t *) ((char *) &meta + numbers[i].offset));
                r = r == 0 ? -EBADMSG : r;
        }
        if (r >= 0)
                r = json_read_bool(&reader, o, "kvm", &meta.kvm);
        json_reader_done(&reader);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        *ret = meta;
        return 0;
}

static int read_meta(int dir_fd, const char *key, TemplateMeta *ret) {
        _cleanup_(json_putp) json_object *o = NULL;
        _cleanup_(freep) char *text = NULL, *error = NULL;
        size_t size;
        int r;

        r = fd_read_file_at(dir_fd, "meta.json", META_SIZE_MAX, &text, &size);
        if (r < 0)
                return r == -ENOENT ? -EBADMSG : r;
        r = json_parse(text, size, &o, &error);
        if (r >= 0)
                r = meta_from_json(o, ret);
        if (r >= 0 && strcmp(ret->key, key) != 0)
                r = -EBADMSG;
        return r;
}

static int write_meta(int dir_fd, const TemplateMeta *meta) {
        _cleanup_(json_putp) json_object *o = meta_to_json(meta);
        _cleanup_(fd_closep) int fd = openat(dir_fd, "meta.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        const char *text;

        if (fd < 0)
                return -errno;
        text = json_text(o);
        return text ? fd_write_all(fd, text, strlen(text)) : -ENOMEM;
}

/* ---- directories ---- */

static int open_store(const char *store) {
        int fd;

        if (mkdir(store, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

static int open_directory_at(int store_fd, const char *name) {
        int fd = openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : fd;
}

static int delete_directory_at(int store_fd, const char *name) {
        static const char *const files[] = {"meta.json", "state", "ram"};
        _cleanup_(fd_closep) int fd = open_directory_at(store_fd, name);

        if (fd < 0)
                return fd;
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                (void) unlinkat(fd, files[i], 0);
        return unlinkat(store_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Names of the directories; those of unfinished ones begin with a dot. */
static size_t list_names(int store_fd, char (*ret)[RECIPE_KEY_LENGTH + 2], size_t max, bool unfinished) {
        int copy = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;
        size_t n = 0;

        if (!dir) {
                fd_close(copy);
                return 0;
        }
        while (n < max && (entry = readdir(dir))) {
                const char *name = entry->d_name;

                if ((name[0] == '.') == unfinished && strlen(name + unfinished) == RECIPE_KEY_LENGTH)
                        memcpy(ret[n++], name, strlen(name) + 1);
        }
        closedir(dir);
        return n;
}

/* ---- load ---- */

static int load_file(int dir_fd, const char *name, uint64_t size, const char *digest, int *ret_fd) {
        _cleanup_(fd_closep) int from = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), to = -EBADF;
        char found[DIGEST_SIZE];
        struct stat st;
        uint64_t used;
        int r;

        if (from < 0)
                return errno == ENOENT ? -EBADMSG : -errno;
        if (fstat(from, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || (size > 0 ? (uint64_t) st.st_size != size : st.st_size > STATE_SIZE_MAX))
                return -EBADMSG;
        r = template_file_new(name, (uint64_t) st.st_size, &to);
        if (r >= 0)
                r = template_file_copy(from, to, found, &used);
        if (r >= 0 && strcmp(found, digest) != 0)
                r = -EBADMSG;
        if (r >= 0)
                r = template_file_seal(to);
        if (r >= 0)
                *ret_fd = TAKE_FD(to);
        return r;
}

static int load_from(int dir_fd, const char *key, TemplateMeta *ret_meta, TemplateFiles *ret_files) {
        TemplateFiles files = TEMPLATE_NO_FILES;
        int r;

        r = read_meta(dir_fd, key, ret_meta);
        if (r >= 0)
                r = load_file(dir_fd, "ram", ret_meta->memory_mib * 1024 * 1024, ret_meta->ram_digest, &files.ram_fd);
        if (r >= 0)
                r = load_file(dir_fd, "state", 0, ret_meta->state_digest, &files.state_fd);
        if (r < 0) {
                template_files_done(&files);
                return r;
        }
        (void) futimens(dir_fd, NULL); /* last used: now */
        *ret_files = files;
        return 0;
}

int template_store_load(const char *store, const char *key, TemplateMeta *ret_meta, TemplateFiles *ret_files) {
        _cleanup_(fd_closep) int store_fd = open_store(store), dir_fd = -EBADF;

        if (store_fd < 0)
                return store_fd;
        dir_fd = open_directory_at(store_fd, key);
        return dir_fd < 0 ? dir_fd : load_from(dir_fd, key, ret_meta, ret_files);
}

/* ---- save ---- */

static int save_file(int dir_fd, const char *name, int from, char digest[static DIGEST_SIZE], uint64_t *ret_used) {
        _cleanup_(fd_closep) int to = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        return to < 0 ? -errno : template_file_copy(from, to, digest, ret_used);
}

static int save_into(int dir_fd, TemplateMeta *meta, const TemplateFiles *files) {
        uint64_t state_bytes;
        int r;

        r = save_file(dir_fd, "ram", files->ram_fd, meta->ram_digest, &meta->used_bytes);
        if (r >= 0)
                r = save_file(dir_fd, "state", files->state_fd, meta->state_digest, &state_bytes);
        return r < 0 ? r : write_meta(dir_fd, meta);
}

int template_store_save(const char *store, TemplateMeta *meta, const TemplateFiles *files) {
        _cleanup_(fd_closep) int store_fd = open_store(store), dir_fd = -EBADF;
        char name[RECIPE_KEY_LENGTH + 2];
        int r;

        if (store_fd < 0)
                return store_fd;
        (void) snprintf(name, sizeof(name), ".%s", meta->key);
        (void) delete_directory_at(store_fd, name);
        if (mkdirat(store_fd, name, 0700) < 0)
                return -errno;
        dir_fd = open_directory_at(store_fd, name);
        r = dir_fd < 0 ? dir_fd : save_into(dir_fd, meta, files);
        if (r >= 0) {
                (void) delete_directory_at(store_fd, meta->key);
                r = renameat(store_fd, name, store_fd, meta->key) < 0 ? -errno : 0;
        }
        if (r < 0)
                (void) delete_directory_at(store_fd, name);
        return r;
}

/* ---- what is there ---- */

typedef struct Entry {
        TemplateMeta meta;
        struct timespec used;
} Entry;

static int last_used_first(const void *a, const void *b) {
        const struct timespec *x = &((const Entry *) a)->used, *y = &((const Entry *) b)->used;

        if (x->tv_sec != y->tv_sec)
                return x->tv_sec > y->tv_sec ? -1 : 1;
        return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* What cannot be read is deleted: nobody would use it. */
static int read_entries(int store_fd, Entry **ret, size_t *ret_n) {
        _cleanup_(freep) char(*names)[RECIPE_KEY_LENGTH + 2] = calloc(STORE_ENTRIES_MAX, sizeof(*names));
        Entry *entries = calloc(STORE_ENTRIES_MAX, sizeof(*entries));
        size_t n_names, n = 0;

        if (!names || !entries) {
                free(entries);
                return -ENOMEM;
        }
        n_names = list_names(store_fd, names, STORE_ENTRIES_MAX, false);
        for (size_t i = 0; i < n_names; i++) {
                _cleanup_(fd_closep) int fd = open_directory_at(store_fd, names[i]);
                struct stat st;

                if (fd < 0 || fstat(fd, &st) < 0)
                        continue;
                if (read_meta(fd, names[i], &entries[n].meta) < 0)
                        (void) delete_directory_at(store_fd, names[i]);
                else
                        entries[n++].used = st.st_mtim;
        }
        qsort(entries, n, sizeof(Entry), last_used_first);
        *ret = entries;
        *ret_n = n;
        return 0;
}

TemplateMeta template_meta_of(const Recipe *recipe, const char *kernel) {
        const PlanInput *input = &recipe->input;
        TemplateMeta meta = {
                .kvm = input->kvm,
                .vcpus = input->vcpus,
                .memory_mib = input->memory_mib,
                .disk_mib = input->disk_mib,
                .tsc_khz = input->tsc_khz,
                .created_usec = clock_realtime_usec(),
        };

        (void) snprintf(meta.key, sizeof(meta.key), "%s", recipe->key);
        (void) snprintf(meta.image, sizeof(meta.image), "%s", recipe->image->name);
        (void) snprintf(meta.image_digest, sizeof(meta.image_digest), "%s", recipe->image->digest);
        (void) snprintf(meta.kernel, sizeof(meta.kernel), "%s", kernel);
        return meta;
}

bool template_meta_replaces(const TemplateMeta *newest, const TemplateMeta *old) {
        return strcmp(newest->image, old->image) == 0 && newest->vcpus == old->vcpus &&
               newest->memory_mib == old->memory_mib && newest->disk_mib == old->disk_mib && newest->kvm == old->kvm &&
               strcmp(newest->key, old->key) != 0;
}

void template_store_trim(const char *store, const TemplateMeta *newest, unsigned max) {
        _cleanup_(fd_closep) int store_fd = open_store(store);
        _cleanup_(freep) Entry *entries = NULL;
        size_t n, kept = 0;

        if (store_fd < 0 || read_entries(store_fd, &entries, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++)
                if (template_meta_replaces(newest, &entries[i].meta) || ++kept > max)
                        (void) delete_directory_at(store_fd, entries[i].meta.key);
}

size_t template_store_list(const char *store, TemplateMeta *ret, size_t max) {
        _cleanup_(fd_closep) int store_fd = open_store(store);
        _cleanup_(freep) Entry *entries = NULL;
        size_t n = 0;

        if (store_fd < 0 || read_entries(store_fd, &entries, &n) < 0)
                return 0;
        n = n < max ? n : max;
        for (size_t i = 0; i < n; i++)
                ret[i] = entries[i].meta;
        return n;
}

int template_store_drop(const char *store, const char *key) {
        _cleanup_(fd_closep) int store_fd = open_store(store);

        return store_fd < 0 ? store_fd : delete_directory_at(store_fd, key);
}

void template_store_sweep(const char *store) {
        _cleanup_(fd_closep) int store_fd = open_store(store);
        char names[16][RECIPE_KEY_LENGTH + 2];
        size_t n = store_fd < 0 ? 0 : list_names(store_fd, names, ELEMENTSOF(names), true);

        for (size_t i = 0; i < n; i++)
                (void) delete_directory_at(store_fd, names[i]);
}
