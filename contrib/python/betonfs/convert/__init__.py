# SPDX-License-Identifier: Apache-2.0
"""The sources of mkfs.beton that Python libraries read: Parquet, HDF5, LMDB,
MosaicML Streaming, LitData, TFRecord, archives of NumPy, and datasets of Hugging
Face and torchvision. mkfs.beton starts this package, which gives it blocks of
rows in shared memory, and it does all else.

    python -m betonfs.convert SOURCE... OUT.beton

is mkfs.beton with this interpreter. Nothing is ever downloaded.
"""
