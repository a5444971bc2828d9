# SPDX-License-Identifier: Apache-2.0
from .compiler import Compiler
from .pipeline import Pipeline
from .pipeline_spec import PipelineSpec

__all__ = ["Compiler", "Pipeline", "PipelineSpec"]
