"""What boto3 does with a site's bucket. Usage: s3_boto.py SCENE, with S3_ENDPOINT, S3_KEY and S3_SECRET.

Every scene says what it expects and ends with an error when that is not so. One that is given something by the test
reads it from the environment.
"""

import base64
import hashlib
import os
import sys
import time
import zlib

import boto3
import requests
from botocore.config import Config
from botocore.exceptions import ClientError

BUCKET = "content"
ENDPOINT = os.environ["S3_ENDPOINT"]
MIB = 1 << 20


def client(key=None, secret=None, **options):
    """A client whose requests are sent once: a refusal is an answer."""
    config = {"signature_version": "s3v4", "s3": {"addressing_style": "path"}, "retries": {"total_max_attempts": 1}}
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=key or os.environ["S3_KEY"],
        aws_secret_access_key=secret or os.environ["S3_SECRET"],
        region_name="us-east-1",
        verify=os.environ.get("S3_CA") or None,
        config=Config(**{**config, **options}),
    )


def refused(call, code, status, **arguments):
    """Asserts that a call is refused, and how. Returns the message."""
    try:
        answer = call(**arguments)
    except ClientError as error:
        found = (error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"])
        assert found == (code, status), f"{arguments}: {error.response}"
        return error.response["Error"].get("Message", "")
    raise AssertionError(f"{call} {arguments} went well: {answer}")


def md5(data):
    return hashlib.md5(data).hexdigest()


def objects():
    s3 = client()
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == [BUCKET]
    assert s3.head_bucket(Bucket=BUCKET)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert s3.get_bucket_location(Bucket=BUCKET)["LocationConstraint"] is None
    assert "Status" not in s3.get_bucket_versioning(Bucket=BUCKET)
    refused(s3.create_bucket, "BucketAlreadyOwnedByYou", 409, Bucket=BUCKET)
    refused(s3.create_bucket, "NotImplemented", 501, Bucket="another")
    refused(s3.list_objects_v2, "NoSuchBucket", 404, Bucket="another")
    refused(s3.head_bucket, "404", 404, Bucket="another")
    body = bytes(range(256)) * 1000
    key = "reports/Überblick 2025+#?%41.csv"
    put = s3.put_object(Bucket=BUCKET, Key=key, Body=body, Metadata={"mtime": "17.5", "who": "Zoe"})
    assert put["ETag"] == f'"{md5(body)}"', put
    head = s3.head_object(Bucket=BUCKET, Key=key)
    assert (head["ContentLength"], head["ETag"]) == (len(body), put["ETag"]), head
    assert head["ContentType"].startswith("text/csv"), head
    assert head["Metadata"]["mtime"] == "17.5", head
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body
    for wanted, expected in [("bytes=0-9", body[:10]), ("bytes=255990-", body[-10:]), ("bytes=-5", body[-5:])]:
        part = s3.get_object(Bucket=BUCKET, Key=key, Range=wanted)
        assert part["ResponseMetadata"]["HTTPStatusCode"] == 206, part
        assert part["Body"].read() == expected and part["ContentRange"].endswith("/256000"), part
    refused(s3.get_object, "InvalidRange", 416, Bucket=BUCKET, Key=key, Range="bytes=256000-")
    refused(s3.get_object, "NoSuchKey", 404, Bucket=BUCKET, Key="reports/none")
    refused(s3.get_object, "NoSuchKey", 404, Bucket=BUCKET, Key="reports")
    refused(s3.head_object, "404", 404, Bucket=BUCKET, Key="reports/none")
    for operation in ("get_object", "head_object"):
        call = getattr(s3, operation)
        assert call(Bucket=BUCKET, Key=key, IfMatch=put["ETag"])["ETag"] == put["ETag"]
        refused(call, "304", 304, Bucket=BUCKET, Key=key, IfNoneMatch=put["ETag"])
        refused(call, "304", 304, Bucket=BUCKET, Key=key, IfModifiedSince=head["LastModified"])
        wrong = "PreconditionFailed" if operation == "get_object" else "412"
        refused(call, wrong, 412, Bucket=BUCKET, Key=key, IfMatch='"0"')
    refused(s3.put_object, "PreconditionFailed", 412, Bucket=BUCKET, Key=key, Body=b"x", IfNoneMatch="*")
    refused(s3.put_object, "PreconditionFailed", 412, Bucket=BUCKET, Key=key, Body=b"x", IfMatch='"0"')
    assert s3.put_object(Bucket=BUCKET, Key=key, Body=b"two", IfMatch=put["ETag"])["ETag"] == f'"{md5(b"two")}"'
    assert s3.put_object(Bucket=BUCKET, Key="new", Body=b"", IfNoneMatch="*")["ETag"] == f'"{md5(b"")}"'
    assert s3.get_object(Bucket=BUCKET, Key="new")["Body"].read() == b""
    s3.delete_object(Bucket=BUCKET, Key="new")
    s3.delete_object(Bucket=BUCKET, Key=key)
    s3.delete_object(Bucket=BUCKET, Key=key)
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0, "no empty folder is left"


def folders():
    s3 = client()
    put = lambda key, body=b"": s3.put_object(Bucket=BUCKET, Key=key, Body=body)
    keys = lambda **more: [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, **more).get("Contents", [])]
    put("marked/")
    assert keys() == ["marked/"]
    head = s3.head_object(Bucket=BUCKET, Key="marked/")
    assert head["ContentLength"] == 0 and head["ETag"] == f'"{md5(b"")}"', head
    put("marked/a", b"a")
    assert keys() == ["marked/", "marked/a"]
    s3.delete_object(Bucket=BUCKET, Key="marked/a")
    assert keys() == ["marked/"], "it was asked for"
    put("marked/deep/er/b", b"b")
    s3.delete_object(Bucket=BUCKET, Key="marked/")
    assert keys() == ["marked/deep/er/b"], "a folder that holds something is no object"
    refused(s3.put_object, "InvalidArgument", 400, Bucket=BUCKET, Key="marked/c/", Body=b"bytes")
    assert refused(s3.put_object, "KeyConflict", 409, Bucket=BUCKET, Key="marked/deep", Body=b"x")
    assert refused(s3.put_object, "KeyConflict", 409, Bucket=BUCKET, Key="marked/deep/er/b/below", Body=b"x")
    s3.delete_object(Bucket=BUCKET, Key="marked/deep")
    assert keys() == ["marked/deep/er/b"], "a tree is never deleted by one key"
    s3.copy_object(Bucket=BUCKET, Key="copied/", CopySource={"Bucket": BUCKET, "Key": "marked/"})
    answer = s3.delete_objects(
        Bucket=BUCKET,
        Delete={"Objects": [{"Key": key} for key in ["marked/deep/er/b", "copied/", "none", "a/../b", "a//b"]]},
    )
    assert [item["Key"] for item in answer["Deleted"]] == ["marked/deep/er/b", "copied/", "none"], answer
    assert [(item["Key"], item["Code"]) for item in answer["Errors"]] == [
        ("a/../b", "InvalidArgument"),
        ("a//b", "InvalidArgument"),
    ], answer
    assert keys() == []


def copies():
    s3 = client()
    body = os.urandom(MIB + 3)
    put = s3.put_object(Bucket=BUCKET, Key="a/one", Body=body, Metadata={"k": "v"})
    source = {"Bucket": BUCKET, "Key": "a/one"}
    done = s3.copy_object(Bucket=BUCKET, Key="b/two ü", CopySource=source)["CopyObjectResult"]
    assert done["ETag"] == put["ETag"], done
    two = s3.get_object(Bucket=BUCKET, Key="b/two ü")
    assert two["Body"].read() == body and two["Metadata"] == {"k": "v"}, two
    s3.copy_object(Bucket=BUCKET, Key="b/three", CopySource=source, MetadataDirective="REPLACE", Metadata={"n": "1"})
    assert s3.head_object(Bucket=BUCKET, Key="b/three")["Metadata"] == {"n": "1"}
    refused(s3.copy_object, "InvalidRequest", 400, Bucket=BUCKET, Key="a/one", CopySource=source)
    s3.copy_object(Bucket=BUCKET, Key="a/one", CopySource=source, MetadataDirective="REPLACE", Metadata={"m": "2"})
    again = s3.head_object(Bucket=BUCKET, Key="a/one")
    assert (again["Metadata"], again["ETag"], again["ContentLength"]) == ({"m": "2"}, put["ETag"], len(body)), again
    refused(s3.copy_object, "NoSuchKey", 404, Bucket=BUCKET, Key="x", CopySource={"Bucket": BUCKET, "Key": "none"})
    refused(s3.copy_object, "NoSuchBucket", 404, Bucket=BUCKET, Key="x", CopySource={"Bucket": "other", "Key": "a"})
    wrong = {"CopySourceIfMatch": '"0"'}
    refused(s3.copy_object, "PreconditionFailed", 412, Bucket=BUCKET, Key="x", CopySource=source, **wrong)
    for key in ["../a", ".sites/usage", "a/../../b"]:
        refused(s3.copy_object, "InvalidArgument", 400, Bucket=BUCKET, Key="x", CopySource=f"{BUCKET}/{key}")
    refused(s3.put_object, "MetadataTooLarge", 400, Bucket=BUCKET, Key="x", Body=b"", Metadata={"a": "b" * 3000})


def listing():
    """3,000 keys: folder-NN/file-NNN, made by the test, and what is told of them in every form."""
    s3 = client()
    expected = sorted(f"tree/folder-{n:02}/file-{m:03}" for n in range(30) for m in range(100))
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="tree/"))
    found = [item["Key"] for page in pages for item in page["Contents"]]
    assert found == expected and [page["KeyCount"] for page in pages] == [1000] * 3, len(found)
    for page_size in (7, 333, 1000):
        pages = s3.get_paginator("list_objects").paginate(
            Bucket=BUCKET, Prefix="tree/folder-1", PaginationConfig={"PageSize": page_size}
        )
        found = [item["Key"] for page in pages for item in page["Contents"]]
        assert found == [key for key in expected if key.startswith("tree/folder-1")], page_size
    for size in (1, 4, 1000):
        pages = s3.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix="tree/", Delimiter="/", PaginationConfig={"PageSize": size}
        )
        prefixes = [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", [])]
        assert prefixes == [f"tree/folder-{n:02}/" for n in range(30)], (size, prefixes)
    mixed = s3.list_objects_v2(Bucket=BUCKET, Delimiter="/")
    assert [item["Key"] for item in mixed["Contents"]] == ["a b+c.txt", "tree.txt", "ü.txt"], mixed
    assert [item["Prefix"] for item in mixed["CommonPrefixes"]] == ["tree-two/", "tree/"], mixed
    flat = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, Prefix="tree", MaxKeys=4)["Contents"]]
    assert flat == ["tree-two/x", "tree.txt", *expected[:2]], f"in the order of the bytes: {flat}"
    other = s3.list_objects_v2(Bucket=BUCKET, Prefix="tree/", Delimiter="file")
    assert len(other["CommonPrefixes"]) == 30 and "Contents" not in other, other
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="tree/", Delimiter="file", PaginationConfig={"PageSize": 7}
    )
    told = [item["Prefix"] for _, page in zip(range(9), pages) for item in page.get("CommonPrefixes", [])]
    assert told == [f"tree/folder-{n:02}/file" for n in range(30)], told
    later = s3.list_objects_v2(Bucket=BUCKET, Prefix="tree/", StartAfter="tree/folder-29/file-097")
    assert [item["Key"] for item in later["Contents"]] == expected[-2:], later
    later = s3.list_objects_v2(Bucket=BUCKET, Prefix="tree/", Delimiter="/", StartAfter="tree/folder-28/file-050")
    assert [item["Prefix"] for item in later["CommonPrefixes"]] == ["tree/folder-28/", "tree/folder-29/"], later
    nothing = s3.list_objects_v2(Bucket=BUCKET, MaxKeys=0)
    assert (nothing["KeyCount"], nothing["IsTruncated"]) == (0, False), nothing
    for prefix in ("none", "tree/folder-99/", "../", ".sites/", "tree//"):
        assert s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["KeyCount"] == 0, prefix
    refused(s3.list_objects_v2, "InvalidArgument", 400, Bucket=BUCKET, ContinuationToken="%%%")
    refused(s3.list_objects_v2, "InvalidArgument", 400, Bucket=BUCKET, MaxKeys=-1)


def multipart():
    s3 = client()
    parts = [os.urandom(5 * MIB), os.urandom(5 * MIB), b"the end"]
    begin = lambda key: s3.create_multipart_upload(Bucket=BUCKET, Key=key, Metadata={"k": "v"})["UploadId"]
    send = lambda key, upload, number, body: s3.upload_part(
        Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=number, Body=body
    )["ETag"]
    upload = begin("big/one.bin")
    send("big/one.bin", upload, 2, b"to be replaced")
    tags = [send("big/one.bin", upload, number, body) for number, body in enumerate(parts, 1)]
    assert tags == [f'"{md5(body)}"' for body in parts], tags
    listed = s3.list_parts(Bucket=BUCKET, Key="big/one.bin", UploadId=upload, MaxParts=2)
    assert [part["Size"] for part in listed["Parts"]] == [5 * MIB, 5 * MIB] and listed["IsTruncated"], listed
    rest = s3.list_parts(
        Bucket=BUCKET, Key="big/one.bin", UploadId=upload, PartNumberMarker=listed["NextPartNumberMarker"]
    )
    assert [part["PartNumber"] for part in rest["Parts"]] == [3] and not rest["IsTruncated"], rest
    found = s3.list_multipart_uploads(Bucket=BUCKET, Prefix="big/")["Uploads"]
    assert [(item["Key"], item["UploadId"]) for item in found] == [("big/one.bin", upload)], found
    refused(s3.get_object, "NoSuchKey", 404, Bucket=BUCKET, Key="big/one.bin")
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0, "parts are no objects"

    def complete(key, upload, *chosen):
        named = [{"PartNumber": number, "ETag": tag} for number, tag in chosen]
        arguments = {"Bucket": BUCKET, "Key": key, "UploadId": upload, "MultipartUpload": {"Parts": named}}
        return (s3.complete_multipart_upload, arguments)

    call, wrong = complete("big/one.bin", upload, (2, tags[1]), (1, tags[0]))
    refused(call, "InvalidPartOrder", 400, **wrong)
    call, wrong = complete("big/one.bin", upload, (1, tags[0]), (2, tags[0]))
    refused(call, "InvalidPart", 400, **wrong)
    call, wrong = complete("big/other.bin", upload, (1, tags[0]))
    refused(call, "NoSuchUpload", 404, **wrong)
    call, right = complete("big/one.bin", upload, *enumerate(tags, 1))
    done = call(**right)
    whole = hashlib.md5(b"".join(hashlib.md5(body).digest() for body in parts)).hexdigest()
    assert done["ETag"] == f'"{whole}-3"', done
    got = s3.get_object(Bucket=BUCKET, Key="big/one.bin")
    assert got["Body"].read() == b"".join(parts) and got["Metadata"] == {"k": "v"} and got["ETag"] == done["ETag"]
    refused(call, "NoSuchUpload", 404, **right)

    # Parts of what is there; only some of them are taken.
    copy = begin("big/two.bin")
    source = {"Bucket": BUCKET, "Key": "big/one.bin"}
    part = s3.upload_part_copy(
        Bucket=BUCKET, Key="big/two.bin", UploadId=copy, PartNumber=1, CopySource=source, CopySourceRange="bytes=2-9"
    )["CopyPartResult"]["ETag"]
    send("big/two.bin", copy, 7, b"left out")
    last = send("big/two.bin", copy, 9, b"!")
    wrong = {"PartNumber": 2, "CopySource": source, "CopySourceRange": "bytes=0-99999999"}
    refused(s3.upload_part_copy, "InvalidArgument", 400, Bucket=BUCKET, Key="big/two.bin", UploadId=copy, **wrong)
    call, right = complete("big/two.bin", copy, (1, part), (9, last))
    call(**right)
    assert s3.get_object(Bucket=BUCKET, Key="big/two.bin")["Body"].read() == parts[0][2:10] + b"!"

    ended = begin("big/three.bin")
    send("big/three.bin", ended, 1, parts[0])
    s3.abort_multipart_upload(Bucket=BUCKET, Key="big/three.bin", UploadId=ended)
    arguments = {"Bucket": BUCKET, "Key": "big/three.bin", "UploadId": ended}
    refused(s3.abort_multipart_upload, "NoSuchUpload", 404, **arguments)
    refused(s3.upload_part, "NoSuchUpload", 404, PartNumber=1, Body=b"x", **arguments)
    for upload_id in ("../../usage", "0" * 32, "x"):
        refused(s3.list_parts, "NoSuchUpload", 404, Bucket=BUCKET, Key="big/three.bin", UploadId=upload_id)
    for number in (0, 10001):
        wrong = {"PartNumber": number, "Body": b"x"}
        refused(s3.upload_part, "InvalidArgument", 400, Bucket=BUCKET, Key="k", UploadId=ended, **wrong)
    # As programs use it: parts side by side.
    s3.upload_file(os.environ["S3_FILE"], BUCKET, "big/four.bin")
    s3.download_file(BUCKET, "big/four.bin", os.environ["S3_FILE"] + ".back")
    with open(os.environ["S3_FILE"], "rb") as sent, open(os.environ["S3_FILE"] + ".back", "rb") as back:
        assert sent.read() == back.read()


def checksums():
    """What the client says of the bytes is compared, in the header and behind them."""
    s3 = client()
    body = b"some bytes" * 1000
    put = lambda **more: s3.put_object(Bucket=BUCKET, Key="sum", Body=body, **more)
    digest = lambda data: base64.b64encode(hashlib.md5(data).digest()).decode()
    crc = lambda data: base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
    sha = lambda data: base64.b64encode(hashlib.sha256(data).digest()).decode()
    assert put(ContentMD5=digest(body))
    assert put(ChecksumCRC32=crc(body))["ChecksumCRC32"] == crc(body)
    assert put(ChecksumSHA256=sha(body))["ChecksumSHA256"] == sha(body)
    assert put(ChecksumAlgorithm="SHA1")["ChecksumSHA1"]
    for wrong in (
        {"ContentMD5": digest(b"other")},
        {"ChecksumCRC32": crc(b"other")},
        {"ChecksumSHA256": sha(b"other")},
    ):
        refused(s3.put_object, "BadDigest", 400, Bucket=BUCKET, Key="sum", Body=b"not " + body, **wrong)
    assert s3.get_object(Bucket=BUCKET, Key="sum")["Body"].read() == body, "what is refused replaces nothing"
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="sum")["UploadId"]
    arguments = {"Bucket": BUCKET, "Key": "sum", "UploadId": upload, "PartNumber": 1}
    refused(s3.upload_part, "BadDigest", 400, Body=b"x", ContentMD5=digest(b"y"), **arguments)
    assert "Parts" not in s3.list_parts(Bucket=BUCKET, Key="sum", UploadId=upload)


def presigned():
    s3 = client()
    s3.put_object(Bucket=BUCKET, Key="a/shared +ü.txt", Body=b"shared")
    s3.put_object(Bucket=BUCKET, Key="secret.txt", Body=b"secret")
    sign = lambda operation, key, seconds=60, **more: s3.generate_presigned_url(
        operation, Params={"Bucket": BUCKET, "Key": key, **more}, ExpiresIn=seconds
    )
    send = lambda method, url, **more: requests.request(method, url, timeout=60, **more)
    url = sign("get_object", "a/shared +ü.txt")
    assert (send("GET", url).status_code, send("GET", url).text) == (200, "shared")
    tampered = [
        url.replace("shared", "shared2"),
        url.replace("/a/shared%20%2B%C3%BC.txt", "/secret.txt"),
        url.replace("X-Amz-Expires=60", "X-Amz-Expires=600"),
        url + "&response-content-type=text/html",
        url[:-1] + ("1" if url[-1] == "0" else "0"),
    ]
    for other in tampered:
        assert other != url
        answer = send("GET", other)
        assert answer.status_code == 403 and "SignatureDoesNotMatch" in answer.text, (other, answer.text)
        assert "secret" not in answer.text
    for method in ("PUT", "DELETE", "POST"):
        assert send(method, url, data=b"x").status_code == 403, method
    week = sign("get_object", "secret.txt", 8 * 24 * 3600)
    assert send("GET", week).status_code == 400
    short = sign("get_object", "secret.txt", 1)
    deadline = time.monotonic() + 60
    while send("GET", short).status_code == 200:
        assert time.monotonic() < deadline, "it never ends"
        time.sleep(0.2)
    ended = send("GET", short)
    assert ended.status_code == 403 and "expired" in ended.text, ended.text
    write = sign("put_object", "a/written.txt")
    sneaked = send("PUT", write, headers={"x-amz-copy-source": f"{BUCKET}/secret.txt"})
    assert sneaked.status_code == 403 and "must be signed" in sneaked.text, sneaked.text
    assert send("PUT", write, data=b"written").status_code == 200
    assert s3.get_object(Bucket=BUCKET, Key="a/written.txt")["Body"].read() == b"written"
    chosen = sign("get_object", "a/written.txt", ResponseContentDisposition="attachment; filename=x.txt")
    assert send("GET", chosen).headers["content-disposition"] == "attachment; filename=x.txt"
    assert send("GET", f"{ENDPOINT}/{BUCKET}/a/written.txt").status_code == 403, "nothing without a signature"


def refusals():
    s3 = client()
    refused(client(secret="wrong").list_objects_v2, "SignatureDoesNotMatch", 403, Bucket=BUCKET)
    refused(client(key="nobody").list_objects_v2, "InvalidAccessKeyId", 403, Bucket=BUCKET)
    refused(client(key="../../etc").list_objects_v2, "InvalidRequest", 400, Bucket=BUCKET)
    old = client(signature_version="s3")
    refused(old.list_objects_v2, "InvalidRequest", 400, Bucket=BUCKET)
    for key in ["..", "a/../b", "./a", "a/./b", "/a", "a//b", ".sites/tokens.json", "a/.SITES/b", "a\\b", "a\x01b", "a\nb"]:
        for call, more in ((s3.get_object, {}), (s3.put_object, {"Body": b"x"}), (s3.delete_object, {})):
            try:
                call(Bucket=BUCKET, Key=key, **more)
                raise AssertionError(f"{key!r} went well")
            except ClientError as error:
                assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400, (key, error.response)
    s3.put_object(Bucket=BUCKET, Key="k", Body=b"k")
    for call, more in (
        (s3.get_bucket_acl, {}),
        (s3.get_bucket_policy, {}),
        (s3.delete_bucket, {}),
        (s3.list_object_versions, {}),
        (s3.get_object_acl, {"Key": "k"}),
        (s3.get_object_tagging, {"Key": "k"}),
        (s3.put_object_acl, {"Key": "k", "ACL": "public-read"}),
        (s3.put_bucket_cors, {"CORSConfiguration": {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}}),
        (s3.put_object, {"Key": "k", "Body": b"x", "Tagging": "a=b"}),
        (s3.put_object, {"Key": "k", "Body": b"x", "ServerSideEncryption": "AES256"}),
        (s3.get_object, {"Key": "k", "VersionId": "1"}),
        (s3.restore_object, {"Key": "k", "RestoreRequest": {"Days": 1}}),
    ):
        refused(call, "NotImplemented", 501, Bucket=BUCKET, **more)
    form = requests.post(f"{ENDPOINT}/{BUCKET}", files={"file": b"x"}, timeout=60)
    assert form.status_code == 501 and "NotImplemented" in form.text, form.text
    assert s3.get_object(Bucket=BUCKET, Key="k")["Body"].read() == b"k"


def rights():
    """What a key opens, as one word an operation: S3_EXPECTED has list, get, put, delete."""
    s3 = client()
    words = []
    for call, more in (
        (s3.list_objects_v2, {}),
        (s3.get_object, {"Key": "folder/file.txt"}),
        (s3.put_object, {"Key": "new.txt", "Body": b"new"}),
        (s3.delete_object, {"Key": "new.txt"}),
    ):
        try:
            call(Bucket=BUCKET, **more)
            words.append("yes")
        except ClientError as error:
            words.append(error.response["Error"]["Code"])
    assert words == os.environ["S3_EXPECTED"].split(), words


def quota():
    """1 MiB and 1,000 bytes are free. Says what is left of an upload in parts."""
    s3 = client()
    assert "quota" in refused(s3.put_object, "QuotaExceeded", 403, Bucket=BUCKET, Key="a", Body=b"x" * 2 * MIB)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="b")["UploadId"]
    arguments = {"Bucket": BUCKET, "Key": "b", "UploadId": upload}
    half = b"y" * (MIB // 2)
    tags = [s3.upload_part(PartNumber=number, Body=half, **arguments)["ETag"] for number in (1, 2)]
    refused(s3.upload_part, "QuotaExceeded", 403, PartNumber=3, Body=half, **arguments)
    refused(s3.put_object, "QuotaExceeded", 403, Bucket=BUCKET, Key="c", Body=half)
    # The whole is not asked for twice.
    parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
    s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **arguments)
    assert s3.head_object(Bucket=BUCKET, Key="b")["ContentLength"] == MIB
    copy = {"CopySource": {"Bucket": BUCKET, "Key": "b"}}
    refused(s3.copy_object, "QuotaExceeded", 403, Bucket=BUCKET, Key="d", **copy)
    s3.delete_object(Bucket=BUCKET, Key="b")
    again = s3.create_multipart_upload(Bucket=BUCKET, Key="e")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="e", UploadId=again, PartNumber=1, Body=b"z" * MIB)
    refused(s3.put_object, "QuotaExceeded", 403, Bucket=BUCKET, Key="f", Body=half)
    s3.abort_multipart_upload(Bucket=BUCKET, Key="e", UploadId=again)
    s3.put_object(Bucket=BUCKET, Key="f", Body=b"x" * MIB)


def edge():
    """Over the whole way: odd names, a body in chunks with its checksum behind it, parts, a presigned URL."""
    s3 = client()
    body = os.urandom(6 * MIB)
    for key in ("plain.bin", "odd/a b+c&d=e%25,ü~'(1).bin"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=body, ChecksumAlgorithm="CRC32")
        got = s3.get_object(Bucket=BUCKET, Key=key)
        assert got["Body"].read() == body and got["ETag"] == f'"{md5(body)}"', key
        assert s3.get_object(Bucket=BUCKET, Key=key, Range="bytes=5-9")["Body"].read() == body[5:10]
    found = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, Prefix="odd/", Delimiter="/")["Contents"]]
    assert found == ["odd/a b+c&d=e%25,ü~'(1).bin"], found
    path = os.environ["S3_FILE"]
    s3.upload_file(path, BUCKET, "parts.bin")
    s3.download_file(BUCKET, "parts.bin", path + ".back")
    with open(path, "rb") as sent, open(path + ".back", "rb") as back:
        assert sent.read() == back.read()
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "plain.bin"}, ExpiresIn=60)
    assert requests.get(url, timeout=60, verify=os.environ.get("S3_CA") or None).content == body
    refused(client(secret="wrong").head_object, "403", 403, Bucket=BUCKET, Key="plain.bin")


if __name__ == "__main__":
    {
        scene.__name__: scene
        for scene in (
            objects, folders, copies, listing, multipart, checksums, presigned, refusals, rights, quota, edge,
        )
    }[sys.argv[1]]()
    print(f"{sys.argv[1]}: all as expected")
