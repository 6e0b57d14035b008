"""The `autoinstall` command.

Exit codes: 0 it worked (a verified environment), 1 a defect of the product, 2 bad input, 3 discarded or no longer
verified, 4 infrastructure, 130 interrupted. Results go to stdout, everything else to stderr.
"""

import logging
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import settings_for, spec_of
from cli.boundary import Exit, boundary, err, exit_of, out, print_json

# What a command needs is imported inside it: `--help` stays fast, and nothing starts Prefect without need.

app = typer.Typer(
    name="autoinstall",
    help="Turns git repositories into verified, runnable environments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

DataOption = Annotated[
    str | None, typer.Option("--data", metavar="DIR", help="Directory of the datasets, or s3://BUCKET/PREFIX.")
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="FAMILY[,…]", help="Who works: rules, llm, or by attempt, as in rules,llm."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show all of Prefect's log.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="An environment's id, or its beginning.")]


def _version(asked: bool) -> None:
    if asked:
        from autoinstall.datasets.records import product_version

        out.print(f"autoinstall {product_version()}")
        raise typer.Exit


@app.callback()
def options(
    _version_: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turns git repositories into verified, runnable environments."""


@app.command()
def run(
    repository: Annotated[str, typer.Argument(metavar="URL[@REF]", help="Repository, and branch, tag or commit.")],
    *,
    data: DataOption = None,
    goals: Annotated[
        Path | None, typer.Option("--goals", metavar="FILE", help="JSON list of {command, description, exit_codes?}.")
    ] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Build an environment of one repository.

    Exits with 0 where it is verified, 3 where it is discarded, 4 where infrastructure failed, 2 for bad input.
    """
    with boundary(as_json=as_json):
        settings = settings_for(data, agent)
        spec = spec_of(repository, goals)
        from autoinstall.checkout import check_url
        from autoinstall.preflight import preflight
        from cli.progress import flow_session

        # What can be told at once is told before Prefect's server starts, which takes its time.
        check_url(spec.url)
        preflight(settings)
        with flow_session(verbose=verbose):
            from flows.build_environment import run_build

            row = run_build(spec, data=settings.data, settings=settings).repository
        if as_json:
            from autoinstall.datasets.records import summary_of

            print_json(summary_of(row))
        else:
            from cli import tables

            out.print(tables.repository(row, settings.data))
        raise typer.Exit(exit_of(row.outcome))


@app.command()
def nightly(
    repositories: Annotated[
        str,
        typer.Option(
            "--repositories",
            metavar="FILE",
            help="CSV, JSON Lines or Parquet, also s3://BUCKET/KEY: url, ref, goals, …",
        ),
    ],
    *,
    data: DataOption = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Repositories under way at once.")] = 2,
    force: Annotated[bool, typer.Option("--force", help="Do again what was done before.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Build environments of a list of repositories; those done before are skipped.

    Exits with 0 whatever was discarded, and with 4 where infrastructure failed for every repository.
    """
    with boundary(as_json=as_json):
        settings = settings_for(data, agent)
        from autoinstall.preflight import preflight
        from autoinstall.repository_list import read_list
        from cli.progress import flow_session

        read_list(repositories, settings.storage)
        preflight(settings)
        with flow_session(verbose=verbose):
            from flows.nightly import run_nightly

            rows = run_nightly(
                repositories, data=settings.data, settings=settings, concurrency=concurrency, force=force
            )
        if as_json:
            print_json({"data": settings.data, "repositories": [row.model_dump(mode="json") for row in rows]})
        else:
            from cli import server, tables

            out.print(tables.outcomes(rows))
            out.print(tables.where(settings.data, server.known()), markup=False)
        codes = {exit_of(row.outcome) for row in rows}
        raise typer.Exit(Exit.INFRASTRUCTURE if codes == {Exit.INFRASTRUCTURE} else Exit.OK)


@app.command()
def recover(*, as_json: JsonOption = False, verbose: VerboseOption = False) -> None:
    """Clean up after runs whose process was killed, say so in Prefect, and start nights of a deployment again.

    Every night begins with this. Exits with 4 where the engine or Prefect does not answer.
    """
    with boundary(as_json=as_json):
        settings = settings_for()
        from autoinstall.datasets.store import store_of
        from autoinstall.sandbox.engine import connect
        from cli import recovering
        from cli.progress import flow_session

        connect(settings).close()
        # What came of it is printed below.
        with flow_session(verbose=verbose, least=logging.WARNING):
            from flows.recovery import run_recover

            found = run_recover(settings)
        if as_json:
            print_json(found.model_dump(mode="json"))
        else:
            names = recovering.repositories_of(store_of(settings.data, settings.storage), found)
            out.print(recovering.recovered(found, names), markup=False)


@app.command()
def report(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show what came out so far: outcomes, yield, cost."""
    with boundary(as_json=as_json):
        settings = settings_for(data)
        from autoinstall.datasets.comparison import compare_teams
        from autoinstall.datasets.questions import frames_of
        from autoinstall.datasets.reader import repositories
        from autoinstall.datasets.schemas import Dataset
        from autoinstall.datasets.statistics import yield_statistics
        from cli.report import answers, report_tables

        found = yield_statistics(settings.data)
        compared = compare_teams(settings.data)
        asked = answers(frames_of(settings.data))
        if as_json:
            paths = {dataset.value: settings.data / dataset for dataset in Dataset}
            print_json(
                {
                    **found.model_dump(mode="json"),
                    "comparison": compared.model_dump(mode="json"),
                    "tables": {answer.name: answer.records() for answer in asked},
                    "datasets": paths,
                }
            )
            return
        from cli import server, tables

        if not found.total:
            out.print(f"Nothing ran yet with datasets in {settings.data}.", markup=False)
            return
        ended = repositories(settings.data)
        if len(ended) > tables.MOST_LINES:
            out.print(f"[dim]The last {tables.MOST_LINES} of {len(ended):,} repositories:[/]")
        out.print(tables.outcomes(ended[-tables.MOST_LINES :]))
        out.print()
        out.print(tables.statistics(found))
        out.print(report_tables(asked))
        if len(compared.teams) > 1:
            from cli.comparison import comparison

            out.print()
            out.print(comparison(compared))
        out.print(tables.where(settings.data, server.known()), markup=False)


@app.command()
def environments(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the accepted environments."""
    with boundary(as_json=as_json):
        settings = settings_for(data)
        from autoinstall.datasets.reader import environments as read

        records = read(settings.data)
        if as_json:
            print_json([record.model_dump(mode="json") for record in records])
            return
        from cli import tables

        if records:
            out.print(tables.environments(records))
        else:
            out.print(f"There is no environment in {settings.data} yet.", markup=False)


@app.command()
def compact(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Put the datasets' small files together; nights do so by themselves where there are many."""
    with boundary(as_json=as_json):
        settings = settings_for(data)
        from autoinstall.datasets.compaction import compact as put_together

        found = put_together(settings.data)
        if as_json:
            print_json(found.model_dump(mode="json"))
        else:
            out.print(f"{found.before} files with rows are {found.after} now.")


@app.command()
def shell(
    environment: IdArgument,
    command: Annotated[
        str | None, typer.Option("-c", metavar="COMMAND", help="Run one command and exit with its exit code.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Open a shell in a fresh container of an environment, its services started."""
    with boundary():
        settings = settings_for(data)
        from autoinstall.datasets.reader import find_environment
        from autoinstall.environment import open_environment
        from autoinstall.sandbox.docker import DockerProvider
        from autoinstall.sandbox.pass_through import constant_env, pass_through_env
        from cli.terminal import attach

        record = find_environment(settings.data, environment)
        if command is None and not sys.stdin.isatty():
            command = sys.stdin.read()
        provider = DockerProvider(settings)
        with open_environment(record, settings=settings, provider=provider, purpose="shell") as opened:
            if command is not None:
                result = opened.run(command)
                sys.stdout.write(result.output)
                sys.stdout.flush()
                raise typer.Exit(result.exit_code)
            err.print(f"[dim]{record.environment_id}: a fresh container, gone when you leave it (exit or ^D).[/]")
            # As every command of a sandbox has them.
            variables = {**constant_env(), **pass_through_env(settings.pass_through), **record.env}
            raise typer.Exit(attach(provider.client, opened.sandbox.id, variables))


@app.command()
def verify(environment: IdArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Run the targets of an environment again, from its row alone, in fresh containers.

    Exits with 0 where it is still verified, with 3 where it is not, and with 4 where that could not be told.
    """
    with boundary(as_json=as_json):
        settings = settings_for(data)
        from autoinstall.datasets.reader import find_environment
        from autoinstall.datasets.records import Target
        from autoinstall.environment import reverify

        record = find_environment(settings.data, environment)
        found = reverify(record, settings=settings)
        results = found.results
        if as_json:
            print_json(
                {
                    "environment_id": record.environment_id,
                    "outcome": found.outcome,
                    "reason": found.reason,
                    "runs": len(found.runs),
                    "targets": [
                        Target.of(result).model_dump(mode="json", include=_SHOWN_OF_TARGETS) for result in results
                    ],
                }
            )
        else:
            from cli import tables

            out.print(f"{tables.outcome_text(found.outcome)}  {record.environment_id}")
            out.print(found.reason, markup=False)
            out.print(tables.goal_results(results))
        raise typer.Exit(exit_of(found.outcome))


_SHOWN_OF_TARGETS = {"command", "description", "exit_code", "verdict", "reason"}


@app.command()
def prune(
    *,
    data: DataOption = None,
    retain: Annotated[
        bool,
        typer.Option("--retain", help="Remove images of environments beyond AUTOINSTALL_RETENTION__*, too."),
    ] = False,
    newest: Annotated[
        int | None, typer.Option("--newest", min=1, help="With --retain: how many are kept of each repository.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", help="With --retain: how long each is kept.")] = None,
    unnamed: Annotated[
        bool,
        typer.Option("--unnamed", help="Remove images of environments that no row of the datasets names, too."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what dead runs left behind, and images of initial states and bases that have not been wanted for long.

    Environments stay, unless --retain or --unnamed says otherwise. Their rows stay in any case.
    """
    with boundary(as_json=as_json):
        settings = settings_for(data)
        from autoinstall.sandbox.engine import connect
        from cli import pruning

        chosen = pruning.choice(settings, retain=retain, newest=newest, days=days, unnamed=unnamed)
        client = connect(settings)
        try:
            found = pruning.prune(client, settings, chosen, dry_run=dry_run)
        finally:
            client.close()
        if as_json:
            print_json({**found.model_dump(mode="json"), "dry_run": dry_run})
        else:
            verb = "would be removed" if dry_run else "removed"
            for kind in ("containers", "networks", "images"):
                for name in getattr(found, kind):
                    out.print(f"{kind[:-1]} {name} {verb}", markup=False)
            for failure in found.failed:
                err.print(f"not removed: {failure}", markup=False)
            freed = "" if dry_run else f", {found.freed_bytes / 2**20:.0f} MiB freed"
            out.print(f"{found.total} {verb}{freed}." if found.total else "There is nothing to remove.")
        raise typer.Exit(Exit.INFRASTRUCTURE if found.failed else Exit.OK)


@app.command()
def doctor(
    data: DataOption = None,
    model: Annotated[
        bool, typer.Option("--model", help="Examine the model's endpoint too, even where no role needs it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look whether this machine can do a run. Exits with 4 where it cannot."""
    with boundary(as_json=as_json):
        settings = settings_for(data)
        from autoinstall.doctor import Check, Status
        from cli import tables
        from cli.examining import examined

        def show(check: Check) -> None:
            if not as_json:
                out.print(tables.check(check))

        found = examined(settings, model=model, show=show)
        if as_json:
            print_json([check.model_dump(mode="json") for check in found])
        failed = any(check.status is Status.FAIL for check in found)
        raise typer.Exit(Exit.INFRASTRUCTURE if failed else Exit.OK)


def main() -> None:
    """The console script's entry point."""
    # SIGTERM ends a command as ^C does: what it has open is closed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


if __name__ == "__main__":
    main()
