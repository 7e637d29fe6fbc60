#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package as installed on a host: files, units, bus, polkit, people. Holds without a single run."""

import json

from harness import BUS, host, main


def test_boots():
    """the host has booted and none of its units failed"""
    assert host("systemctl", "is-system-running").text == "running"
    assert host("systemctl", "--failed", "--plain", "--no-legend").text == ""


def test_installed():
    """the package is installed as a whole and its files are as packed"""
    assert host("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "ephemeral").text == "ii"
    assert host("dpkg", "--verify", "ephemeral").text == ""


def test_units():
    """systemd has nothing to say against the installed units"""
    result = host("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "ephemerald.service", "ephemeral.slice")
    assert result.status == 0
    assert "ephemeral" not in result.errors


def test_people():
    """alice and bob are in the group, mallory is not"""
    assert host("getent", "group", "ephemeral").text.split(":")[3].split(",") == ["alice", "bob"]
    for user, member in (("alice", True), ("bob", True), ("mallory", False)):
        assert ("ephemeral" in host("id", "-nG", user=user).text.split()) == member, user


def test_activatable():
    """the bus can start the manager by its name"""
    names = json.loads(
        host("busctl", "--json=short", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "ListActivatableNames").text
    )["data"][0]
    assert BUS in names


def test_polkit_actions():
    """polkit knows every action of the design and asks an administrator where no rule decides"""
    authority = ("org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority")
    actions = json.loads(host("busctl", "--json=short", "call", *authority, "EnumerateActions", "s", "en").text)["data"][0]
    ours = {action[0]: action for action in actions if action[0].startswith(BUS)}
    wanted = ("run", "run-with-web", "run-with-connection", "run-as-guest-root", "read-others", "manage", "manage-accounts")
    assert sorted(ours) == sorted(f"{BUS}.{name}" for name in wanted)
    for action in ours.values():
        # Administrators, once (2) or remembered (4), see ImplicitAuthorization in polkit's reference.
        assert all(implicit in (2, 4) for implicit in action[6:9]), action


def test_directories():
    """what templates are kept in is root's alone, images can be looked at"""
    assert host("stat", "-c", "%a %U", "/var/cache/ephemeral").text == "700 root"
    assert host("stat", "-c", "%a %U", "/var/lib/ephemeral/images").text == "755 root"


def test_foreign_interfaces():
    """the bus refuses what the manager does not offer: enumeration and setting"""
    for interface, member, *arguments in (
        ("org.freedesktop.DBus.ObjectManager", "GetManagedObjects"),
        ("org.freedesktop.DBus.Properties", "Set", "ssv", "org.ephemeral1.Manager", "Version", "s", "9"),
    ):
        result = host("busctl", "call", BUS, "/org/ephemeral1", interface, member, *arguments, user="alice")
        assert result.status != 0
        assert "denied" in result.errors.lower(), result.errors


main()
