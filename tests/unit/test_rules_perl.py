"""Perl distributions: what they declare, Debian's packages for it, goals and plans."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.needs import Need
from autoinstall.agents.rules.ecosystems.perl import PerlEcosystem
from autoinstall.agents.rules.ecosystems.perl.distribution import distribution_of, needs_of
from autoinstall.agents.rules.ecosystems.perl.plan import package_name, served
from autoinstall.errors import RegistryUnreachable
from tests.unit.rules_contexts import context_of, goals_of, plan_of, scripted

CPANFILE = """requires 'perl', '5.10';
requires 'File::Next', '1.16';
requires "Own::Module";
on test => sub {
    requires 'Test::More';
    requires 'Test::Far';
};
on 'develop' => sub {
    requires 'Perl::Tidy';
};
"""
FILES = {
    "cpanfile": CPANFILE,
    "Makefile.PL": "use ExtUtils::MakeMaker;\nWriteMakefile(NAME => 'Own', PREREQ_PM => {\n"
    "  'List::Util' => '1.3',\n  ($^O eq 'MSWin32' ? ('Win32::Job' => 0) : ()),\n}, "
    "TEST_REQUIRES => { 'Test::Deep' => 0 });\n",
    "lib/Own.pm": "package Own;\nuse strict;\nuse Try::Tiny;\nour $VERSION = '1.02';\n1;\n\n=head1 NAME\n\nOwn\n",
    "lib/Own/Module.pm": "package Own::Module;\n1;\n",
    "t/own.t": "use Test::More;\nuse MyHelper;\nok 1;\ndone_testing;\n",
    "t/lib/MyHelper.pm": "package MyHelper;\n1;\n",
    "script/own": "#!/usr/bin/perl\nuse Getopt::Long;\nGetOptions('help' => \\my $help);\n",
}
HAVE = "have strict\nhave Test::More\nhave List::Util\nhave ExtUtils::MakeMaker\n"
POLICY = "libfile-next-perl:\n  Installed: (none)\n  Candidate: 1.18-2\n  Version table:\n"
INDEX = "usr/share/perl5/Test/Far.pm   perl/libtest-far-and-near-perl\n"
INDEX += "usr/share/perl5/Test/Deep.pm perl/libtest-deep-perl\n"


def test_needs(tmp_path: Path) -> None:
    context = context_of(tmp_path, FILES)
    distribution = distribution_of(context.tree)
    assert distribution is not None
    needs = {need.name: need.hard for need in needs_of(context.tree, distribution)}
    assert needs["File::Next"]
    assert needs["Test::Far"]
    assert needs["Test::Deep"]
    assert needs["List::Util"]
    assert needs["Try::Tiny"] is False
    assert not {"perl", "Perl::Tidy", "Own::Module", "MyHelper", "Win32::Job"} & set(needs)


def test_prerequisites_of_dist_ini_and_meta(tmp_path: Path) -> None:
    meta = '{"prereqs": {"runtime": {"requires": {"JSON::PP": 0}}, "develop": {"requires": {"Pod::Weaver": 0}}}}'
    ini = (
        "name = Own\n[Prereqs]\nMoo = 2\n\n"
        "[Prereqs / TestRequires]\nTest::Fatal = 0\n\n[Prereqs / DevelopRequires]\nX::Y = 0\n"
    )
    files = {"dist.ini": ini, "META.json": meta, "lib/Own.pm": "package Own;\n1;\n", "t/a.t": "ok 1;\n"}
    context = context_of(tmp_path, files)
    distribution = distribution_of(context.tree)
    assert distribution is not None
    assert {need.name for need in needs_of(context.tree, distribution) if need.hard} == {
        "JSON::PP",
        "Moo",
        "Test::Fatal",
    }


def test_modules_are_found_by_name_then_by_file() -> None:
    needs = tuple(Need(name=name) for name in ("strict", "File::Next", "Test::Far", "No::Where"))
    needs += (Need(name="No::Wish", hard=False),)
    with scripted({"perl -e": HAVE, "apt-cache policy": POLICY, "_Contents-": INDEX}) as sandbox:
        provision = served(needs, sandbox)
    assert provision.packages == ("libfile-next-perl", "libtest-far-and-near-perl")
    assert provision.unserved == ("No::Where",)


@pytest.mark.parametrize(
    ("module", "package"), [("Foo::Bar", "libfoo-bar-perl"), ("JSON", "libjson-perl"), ("Foo_Bar", "libfoo-bar-perl")]
)
def test_names_of_packages(module: str, package: str) -> None:
    assert package_name(module) == package


def test_goals(tmp_path: Path) -> None:
    files = {**FILES, "t/pod.t": "plan skip_all => 'for authors' unless $ENV{AUTHOR};\n"}
    goals = goals_of(PerlEcosystem(), context_of(tmp_path, files), {"timeout 15 bash": ""})
    assert "prove -l -v t/pod.t" not in goals
    assert {"make && prove -b -r t", "prove -l -v t/own.t", "perl Makefile.PL"} <= set(goals)
    assert goals["make && prove -b -r t"].min_pass_rate == 0.9
    assert '"1.02"' in goals["perl -Ilib -MOwn -e 'print Own->VERSION'"].description
    assert '"Own/Module.pm"' in goals["perl -Ilib -MOwn::Module -e 'print $INC{q(Own/Module.pm)}'"].description
    assert "perl -Ilib script/own --help" in goals
    syntax = next(goal for command, goal in goals.items() if "syntax OK" in command)
    assert "at least 1" in syntax.description


def test_the_plan(tmp_path: Path) -> None:
    answers = {"perl -e": HAVE, "apt-cache policy": POLICY, "_Contents-": INDEX, "timeout 15 bash": (7, "refused")}
    files = {**FILES, "Makefile.PL": "use ExtUtils::MakeMaker;\nWriteMakefile(NAME => 'Own');\n"}
    plan = plan_of(PerlEcosystem(), context_of(tmp_path, files), answers)
    assert "libfile-next-perl" in plan.steps[0].command
    assert plan.steps[-1].command == "perl Makefile.PL && make"
    assert not any("cpanm" in step.command for step in plan.steps)


def test_what_debian_does_not_have(tmp_path: Path) -> None:
    """CPAN fills the gaps where it answers; where it does not, the repository is given up at once, with the names."""
    context = context_of(tmp_path, FILES)
    lacking = {"perl -e": HAVE, "apt-cache policy": POLICY, "_Contents-": ""}
    plan = plan_of(PerlEcosystem(), context, {**lacking, "timeout 15 bash": ""})
    assert any("cpanm --notest" in step.command for step in plan.steps)
    with pytest.raises(RegistryUnreachable, match=r"CPAN does not answer.*Test::Far") as caught:
        plan_of(PerlEcosystem(), context, {**lacking, "timeout 15 bash": (6, "Could not resolve host")})
    assert caught.value.code == "registry_unreachable"
