"""ApiVersions: what this broker serves, exactly as the router lists it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.broker.router import SERVED
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(
    broker: Broker, request: Request, body: ApiVersionsRequest, now_ms: int
) -> ApiVersionsResponse:
    """Answer with every API that has a handler; from version 3 the client names itself."""
    if request.api_version >= 3:
        name, version = body.client_software_name, body.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        request.connection.client_software_name = name
        request.connection.client_software_version = version
    return ApiVersionsResponse(
        api_keys=[_entry(key) for key in sorted(SERVED)],
        finalized_features_epoch=broker.metadata_cache.finalized_features_epoch,
    )


def unsupported_version() -> ApiVersionsResponse:
    """For a version above ours: which versions of this one API to come back with."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_entry(ApiKey.API_VERSIONS)]
    )


def _entry(key: ApiKey) -> ApiVersion:
    served = SERVED[key]
    return ApiVersion(api_key=key, min_version=served.min_version, max_version=served.max_version)
