"""`chaffinch serve`: the review station of a project, or the service for programs, on this computer."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chaffinch.cli import frame
from chaffinch.cli.project import check_extra
from chaffinch.deid import DEFAULT_POLICY
from chaffinch.deid.keys import Secret
from chaffinch.errors import ConfigError, MissingExtraError
from chaffinch.web.settings import LOOPBACK_NAMES, Limits, ServerSettings, TlsFiles

if TYPE_CHECKING:
    from chaffinch.web.api.engine import EngineSettings  # loaded when something is served: help needs no engine

_DEFAULT = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions:
    """The options of `chaffinch serve`."""

    project: Annotated[Path | None, typer.Argument(metavar="[PROJECT]", help="Folder of a review project.")] = None
    demo: Annotated[bool, typer.Option("--demo", help="Open a review of invented notes with two readers.")] = False
    key_file: Annotated[
        Path | None, typer.Option(help="Key of the project; else that of project.toml or CHAFFINCH_PROJECT_KEY.")
    ] = None
    proxy_header: Annotated[
        str | None, typer.Option(metavar="NAME", help="Take the user's name from this header of a proxy.")
    ] = None
    proxy_secret_file: Annotated[
        Path | None, typer.Option(help="What the proxy sends as X-Chaffinch-Proxy to show that it is the proxy.")
    ] = None
    api_only: Annotated[bool, typer.Option("--api-only", help="Serve programs: REST, without pages.")] = False
    host: Annotated[str, typer.Option(help="Address to listen on; one of other computers needs TLS files.")] = (
        LOOPBACK_NAMES[0]
    )
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8765
    allow_host: Annotated[
        list[str], typer.Option(metavar="NAME", help="Another name by which clients call the server. Several times.")
    ] = field(default_factory=list)
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain, PEM.")] = None
    tls_key: Annotated[Path | None, typer.Option(help="Private key of the certificate, PEM.")] = None
    token_file: Annotated[
        Path | None, typer.Option(help="File of the token that clients show; made, mode 0600, if missing.")
    ] = None
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let in everybody on this computer; only on 127.0.0.1.")
    ] = False
    model: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]FILE",
            help="A model to serve: a file, or a packaged one. Several times; the first is usual.",
        ),
    ] = field(default_factory=lambda: ["deid-en"])
    recall: Annotated[
        float | None, typer.Option(help="Share of identifiers to aim for; more recall costs precision.", min=0, max=1)
    ] = None
    fast: Annotated[bool, typer.Option("--fast", help="Leave out the contextual reader: faster, less accurate.")] = (
        False
    )
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]FILE", help="A policy: a TOML file, or a ready one. Several times; the first is usual."
        ),
    ] = field(default_factory=lambda: [DEFAULT_POLICY])
    secret_file: Annotated[
        Path | None, typer.Option(help="Secret of surrogates and date shifts where a request names none.")
    ] = None
    secret: Annotated[
        list[str], typer.Option(metavar="NAME=FILE", help="A secret that requests may name. Several times.")
    ] = field(default_factory=list)
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own models.")] = 1
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request at most.")] = _DEFAULT.body_bytes
    max_chars: Annotated[int, typer.Option(min=1, help="Characters of a document at most.")] = _DEFAULT.characters
    max_waiting: Annotated[int, typer.Option(min=1, help="Waiting requests at most; more get 429.")] = _DEFAULT.waiting
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to answer a request at most.")] = _DEFAULT.seconds
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(ServeOptions)
def serve_command(options: ServeOptions) -> None:
    """chaffinch serve PROJECT

    Open the review station of a project, or serve programs (--api-only), on this computer until Ctrl-C or SIGTERM;
    requests under way are finished first. The station is opened by a link that works once; programs send
    `Authorization: Bearer` with the token of the file that is printed.
    """
    chosen = [options.project is not None, options.demo, options.api_only]
    if sum(chosen) != 1:
        raise ConfigError("give one of a project's folder, --demo, or --api-only")
    if find_spec("starlette") is None:
        raise MissingExtraError("starlette", "web")
    from chaffinch.jobs.pool.worker import turn_off_core_dumps

    turn_off_core_dumps()
    if options.api_only:
        serve_programs(options)
    else:
        serve_station(options)


def serve_programs(options: ServeOptions) -> None:
    """Serve the REST API until the process is stopped; ConfigError for options of a review station."""
    from chaffinch.web import tokens
    from chaffinch.web.api.engine import Engine

    _refuse_options(options, "--api-only", "key_file", "proxy_header", "proxy_secret_file")
    file = None if options.no_token else options.token_file or tokens.default_file(options.port)
    if options.no_token and options.token_file is not None:
        raise ConfigError("--no-token asks for no token, so --token-file has no effect; give only one of them")
    settings = server_settings(options, None if file is None else tokens.read_or_make(file))
    engine = engine_settings(options)
    if options.workers == 1:
        app = _make_app(settings, engine)  # before a port is taken
        run_server(lambda: app, settings, options, file)
    else:
        Engine.load(engine)  # what cannot be loaded is refused here; each process loads its own
        run_server(partial(_make_app, settings, engine), settings, options, file)


def _refuse_options(options: ServeOptions, choice: str, *names: str) -> None:
    """Raise ConfigError for the first of the named options that was given, as it has no effect with `choice`."""
    for name in names:
        if getattr(options, name):
            raise ConfigError(f"--{name.replace('_', '-')} has no effect with {choice}; leave it out")


def serve_station(options: ServeOptions) -> None:
    """Serve the review station of a project or a demo, and print login links; ConfigError for unused options."""
    _refuse_options(options, "a review station", "token_file", "no_token")
    if options.workers != 1:
        raise ConfigError(f"--workers {options.workers} has no effect with a review station, which is one process")
    if (options.proxy_header is None) != (options.proxy_secret_file is None):
        raise ConfigError("--proxy-header needs --proxy-secret-file, and the other way round; give both")
    check_extra()
    from chaffinch.web.review.station import open_station
    from chaffinch.web.server import listen, serve

    proxy = None
    if options.proxy_header is not None and options.proxy_secret_file is not None:
        proxy = options.proxy_header, Secret.read(options.proxy_secret_file).key.decode()
    key = None if options.key_file is None else Secret.read(options.key_file)
    with open_station(options.project, key, proxy=proxy) as station:
        # A server that others can reach must have a token; that of the station is the session, so this one is unused.
        settings = server_settings(options, token_urlsafe(32))
        listener = listen(settings)
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        base = f"{'http' if settings.tls is None else 'https'}://{name}:{listener.getsockname()[1]}"
        for line in station.greeting(base):
            frame.note(line, quiet=False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        serve(partial(station.app, settings), settings, listener)


def server_settings(options: ServeOptions, token: str | None) -> ServerSettings:
    """Return the settings of the server from options and token; ConfigError for a certificate or key alone."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise ConfigError("a certificate needs its key; give both --tls-cert FILE and --tls-key FILE")
    tls = None if options.tls_cert is None or options.tls_key is None else TlsFiles(options.tls_cert, options.tls_key)
    limits = Limits(
        body_bytes=options.max_body, characters=options.max_chars, waiting=options.max_waiting, seconds=options.timeout
    )
    return ServerSettings(options.host, options.port, token, tls, tuple(options.allow_host), limits)


def engine_settings(options: ServeOptions) -> EngineSettings:
    """Return the models, policies and secrets to serve, by name; ConfigError if a secret has no name."""
    from chaffinch.web.api.deidentify import DEFAULT_SECRET
    from chaffinch.web.api.engine import EngineSettings, files_by_name

    policies = files_by_name(options.policy)
    if any("=" not in each for each in options.secret):
        raise ConfigError("a secret needs a name that requests use: --secret NAME=FILE; or give --secret-file FILE")
    given = [f"{DEFAULT_SECRET}={options.secret_file}"] if options.secret_file is not None else []
    return EngineSettings(
        files_by_name(options.model),
        {name: file for name, file in policies.items() if name != file},
        files_by_name([*given, *options.secret]),
        policy=next(iter(policies)),
        recall=options.recall,
        fast=options.fast,
    )


def run_server(factory: Any, settings: ServerSettings, options: ServeOptions, token_file: Path | None) -> None:
    """Listen at the settings' address, print it and the token's file, and serve until the process is stopped."""
    from chaffinch.web.server import listen, serve

    listener = listen(settings)
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.tls is None else "https"
    frame.note(f"serving {scheme}://{name}:{listener.getsockname()[1]}", quiet=options.quiet)
    frame.note("no token is asked" if token_file is None else f"token in {token_file}", quiet=options.quiet)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start background jobs with it ignored
    serve(factory, settings, listener, workers=options.workers)


def _make_app(settings: ServerSettings, engine: EngineSettings) -> Any:
    """Return the app of the REST service, with core dumps turned off first: memory holds notes."""
    from chaffinch.jobs.pool.worker import turn_off_core_dumps
    from chaffinch.web.app import create_app

    turn_off_core_dumps()
    return create_app(settings, engine)
