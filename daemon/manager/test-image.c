/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/errors.h"
#include "common/fd.h"
#include "manager/image.h"

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FILES                                                                                                         \
        "\"files\":{\"root.erofs\":{\"sha256\":\"" SHA256 "\",\"size\":4},"                                           \
        "\"kernel\":{\"sha256\":\"" SHA256 "\",\"size\":6},\"initrd\":{\"sha256\":\"" SHA256 "\",\"size\":7}}"
#define HEAD(name)                                                                                                    \
        "{\"format\":1,\"name\":\"" name "\",\"distribution\":\"debian\",\"suite\":\"bookworm\","                     \
        "\"architecture\":\"amd64\",\"kernel_release\":\"6.1.0-1\",\"digest\":\"" SHA256 "\","
#define MANIFEST(name) HEAD(name) FILES ",\"packages\":[\"bash 5.2\"]}"

static char directory[] = "/tmp/test-image-XXXXXX";
static char search[128];

/* A path below the test's directory; good until the next call but one. */
static const char *path_of(const char *name) {
        static char paths[2][256];
        static unsigned n;
        char *path = paths[n++ % 2];

        (void) snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
        return path;
}

static void put(const char *name, const char *text) {
        _cleanup_(fd_closep) int fd = -EBADF;

        (void) unlink(path_of(name));
        fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert(fd >= 0);
        assert(fd_write_all(fd, text, strlen(text)) == 0);
}

/* A good image in b/x, as every test wants it at first. */
static void put_image(void) {
        (void) mkdir(path_of("b/x"), 0755);
        assert(chmod(path_of("b/x"), 0755) == 0);
        put("b/x/manifest.json", MANIFEST("x"));
        put("b/x/root.erofs", "root");
        put("b/x/kernel", "kernel");
        put("b/x/initrd", "initrd!");
}

static void refused(const char *name, const char *error_name, const char *expected) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        Image *image = NULL;

        assert(image_open(search, name, &image, &e) < 0);
        if (strcmp(e.name, error_name) != 0 || !strstr(e.message, expected))
                fprintf(stderr, "expected: %s\ngot:      %s: %s\n", expected, e.name, e.message);
        assert(strcmp(e.name, error_name) == 0);
        assert(strstr(e.message, expected));
        assert(!image);
}

static void unreadable(const char *expected) {
        refused("x", ERROR_PREFIX "ImageUnreadable", expected);
        put_image();
}

static void a_good_image_is_opened(void) {
        _cleanup_(image_freep) Image *image = NULL;
        char text[16] = "";

        put_image();
        assert(image_open(search, "x", &image, NULL) == 0);
        assert(strcmp(image->name, "x") == 0 && strcmp(image->digest, SHA256) == 0);
        assert(strcmp(image->kernel_release, "6.1.0-1") == 0 && strcmp(image->dir, path_of("b/x")) == 0);
        assert(read(image->root_fd, text, sizeof(text)) == 4 && memcmp(text, "root", 4) == 0);
        assert(read(image->kernel_fd, text, sizeof(text)) == 6 && memcmp(text, "kernel", 6) == 0);
        assert(read(image->initrd_fd, text, sizeof(text)) == 7 && memcmp(text, "initrd!", 7) == 0);
        assert(fcntl(image->root_fd, F_GETFD) & FD_CLOEXEC);
        assert((fcntl(image->root_fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
}

static void the_first_directory_wins_even_with_a_broken_image(void) {
        assert(mkdir(path_of("a/x"), 0755) == 0);
        refused("x", ERROR_PREFIX "ImageUnreadable", "/a/x/manifest.json: No such file or directory");
        assert(rmdir(path_of("a/x")) == 0);
}

static void a_missing_image_says_how_to_make_one(void) {
        refused("y", ERROR_PREFIX "NoSuchImage", "no image 'y' in ");
        refused("y", ERROR_PREFIX "NoSuchImage", "ephemeralctl image build");
}

static void only_names_are_taken(void) {
        char name[IMAGE_NAME_MAX + 2];

        memset(name, 'a', sizeof(name));
        name[IMAGE_NAME_MAX] = 0;
        refused(name, ERROR_PREFIX "NoSuchImage", "no image");
        name[IMAGE_NAME_MAX] = 'a';
        name[IMAGE_NAME_MAX + 1] = 0;
        refused(name, ERROR_PREFIX "InvalidRequest", "not a name of an image");
        refused("", ERROR_PREFIX "InvalidRequest", "not a name of an image");
        refused("..", ERROR_PREFIX "InvalidRequest", "not a name of an image");
        refused("b/x", ERROR_PREFIX "InvalidRequest", "not a name of an image");
        refused("/etc", ERROR_PREFIX "InvalidRequest", "not a name of an image");
        refused("X", ERROR_PREFIX "InvalidRequest", "not a name of an image");
}

static void links_and_devices_are_refused(void) {
        put("b/elsewhere", "kernel");
        assert(unlink(path_of("b/x/kernel")) == 0 && symlink("../elsewhere", path_of("b/x/kernel")) == 0);
        unreadable("/b/x/kernel: is a symbolic link");
        assert(unlink(path_of("b/x/kernel")) == 0 && mkfifo(path_of("b/x/kernel"), 0644) == 0);
        unreadable("/b/x/kernel: is not a regular file");
        assert(unlink(path_of("b/x/kernel")) == 0);
        unreadable("/b/x/kernel: No such file or directory");
        assert(unlink(path_of("b/elsewhere")) == 0);

        assert(symlink("../b/x", path_of("a/x")) == 0);
        refused("x", ERROR_PREFIX "ImageUnreadable", "/a/x: is not a directory");
        assert(unlink(path_of("a/x")) == 0);
}

static void what_others_may_change_is_refused(void) {
        assert(chmod(path_of("b/x/initrd"), 0664) == 0);
        unreadable("/b/x/initrd: is writable by its group or by everyone (mode 0664)");
        assert(chmod(path_of("b/x/manifest.json"), 0646) == 0);
        unreadable("/b/x/manifest.json: is writable");
        assert(chmod(path_of("b/x"), 0777) == 0);
        unreadable("/b/x: is writable");
        if (geteuid() != 0)
                return; /* nothing can be given away */
        assert(chown(path_of("b/x/root.erofs"), 1234, 0) == 0);
        unreadable("/b/x/root.erofs: belongs to uid 1234");
}

static void sizes_must_be_those_of_the_manifest(void) {
        put("b/x/root.erofs", "roo");
        unreadable("/b/x/root.erofs: has 3 bytes, its manifest says 4");
        put("b/x/kernel", "kernels");
        unreadable("/b/x/kernel: has 7 bytes, its manifest says 6");
        put("b/x/initrd", "");
        unreadable("/b/x/initrd: has 0 bytes, its manifest says 7");
}

static void manifests_are_checked(void) {
        put("b/x/manifest.json", MANIFEST("y"));
        unreadable("/b/x/manifest.json: key 'name': expected \"x\", as the directory is called");
        put("b/x/manifest.json", "{\"format\":1,\n}");
        unreadable("/b/x/manifest.json: line 2, column 1: expected a key");
        put("b/x/manifest.json", "{\"format\":2}");
        unreadable("/b/x/manifest.json:1: key 'format': expected a whole number from 1 to 1, got 2");
        put("b/x/manifest.json", HEAD("x") "\"files\":{\"kernel\":{\"sha256\":\"" SHA256 "\",\"size\":1}}}");
        unreadable("key 'files.root.erofs': expected an object with sha256 and size");
        put("b/x/manifest.json", HEAD("x") "\"files\":{\"root.erofs\":{\"sha256\":\"" SHA256 "\",\"size\":0}}}");
        unreadable("key 'files.root.erofs.size': expected a whole number from 1 to ");
        put("b/x/manifest.json", HEAD("x") "\"files\":{\"root.erofs\":{\"sha256\":\"xyz\",\"size\":1}}}");
        unreadable("key 'files.root.erofs.sha256': expected 64 digits of lower-case hexadecimal");
        put("b/x/manifest.json", HEAD("x") "\"files\":{\"../../etc/shadow\":{}}}");
        unreadable("no such key; there are: root.erofs, kernel, initrd");
        put("b/x/manifest.json", HEAD("x") FILES ",\"packages\":[1]}");
        unreadable("key 'packages[0]': expected a string, got 1");
        put("b/x/manifest.json", "");
        assert(truncate(path_of("b/x/manifest.json"), IMAGE_MANIFEST_SIZE_MAX + 1) == 0);
        unreadable("/b/x/manifest.json: larger than 1 MiB");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

int main(void) {
        (void) umask(022);
        assert(mkdtemp(directory));
        assert(mkdir(path_of("a"), 0755) == 0 && mkdir(path_of("b"), 0755) == 0);
        (void) snprintf(search, sizeof(search), "/nonexistent:%s/a:%s/b", directory, directory);

        a_good_image_is_opened();
        the_first_directory_wins_even_with_a_broken_image();
        a_missing_image_says_how_to_make_one();
        only_names_are_taken();
        links_and_devices_are_refused();
        what_others_may_change_is_refused();
        sizes_must_be_those_of_the_manifest();
        manifests_are_checked();

        assert(nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
        return 0;
}
