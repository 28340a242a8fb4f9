BEGIN TRANSACTION;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "about" VALUES('lumitui','0.1.0');
CREATE TABLE manifests (site TEXT NOT NULL, root TEXT NOT NULL, id TEXT NOT NULL, manifest TEXT NOT NULL, PRIMARY KEY (site, root)) WITHOUT ROWID;
INSERT INTO "manifests" VALUES('somewhere','/root','id','text');
CREATE TABLE metrics (run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, ordinal INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (run, ordinal)) WITHOUT ROWID;
INSERT INTO "metrics" VALUES('child-000002',0,'{"step": 1}');
INSERT INTO "metrics" VALUES('child-000002',1,'{"step": 2}');
CREATE TABLE runs (id TEXT PRIMARY KEY, name TEXT NOT NULL, site TEXT NOT NULL, created REAL NOT NULL, parent TEXT, spec TEXT NOT NULL, command TEXT NOT NULL, layout TEXT NOT NULL, price TEXT NOT NULL, global_batch INTEGER, deepspeed_config TEXT, project TEXT NOT NULL, job_file TEXT, folder TEXT NOT NULL, root TEXT NOT NULL, token TEXT NOT NULL, git_commit TEXT, branch TEXT, dirty INTEGER NOT NULL, snapshot TEXT, state TEXT NOT NULL, job_id TEXT, reason TEXT NOT NULL, word TEXT NOT NULL, rc INTEGER, failed_rank INTEGER, attempt INTEGER NOT NULL, submitted REAL, started REAL, ended REAL, updated REAL NOT NULL, nodes_used TEXT NOT NULL, log_sizes TEXT NOT NULL, metrics_offset INTEGER NOT NULL, exits INTEGER NOT NULL, resumed_from TEXT, note TEXT NOT NULL, broken_metrics INTEGER NOT NULL DEFAULT 0);
INSERT INTO "runs" VALUES('parent-000001','vit-tiny','somewhere',10.0,NULL,'{"name": "vit-tiny", "site": "somewhere", "partition": "gpu", "nodes": 2, "time": "01:00:00", "trainer": "ddp", "args": ["--epochs", "10", "\u00e4 b''c"], "env": {"MIOPEN_LOG_LEVEL": "4"}, "metrics": {"images_per_s": "Images/sec: (\\d+)"}}','sbatch job.sh','{"nodes": 2, "ranks_per_node": 8, "tasks_per_node": 8, "cpus_per_task": 7, "gpus_per_node": 8, "whole_nodes": true, "masks": ["0xfe", "0x01"], "planned_cores": ["1-7", "0"], "exact": false, "unplanned": ""}','{"amount": 32.0, "unit": "GPU-hours", "per_hour": 16.0}',256,'{"a": 1}','/home/me/project','job.yaml','/scratch/me/project/runs/1','/scratch/me/project','0123456789abcdef','abc123','main',1,'s1','done','41','','',0,NULL,1,NULL,NULL,NULL,0.0,'','{}',0,0,NULL,'',0);
INSERT INTO "runs" VALUES('child-000002','vit-tiny','somewhere',20.0,'parent-000001','{"name": "vit-tiny", "site": "somewhere", "partition": "gpu", "nodes": 2, "time": "01:00:00", "trainer": "ddp", "args": ["--epochs", "10", "\u00e4 b''c"], "env": {"MIOPEN_LOG_LEVEL": "4"}, "metrics": {"images_per_s": "Images/sec: (\\d+)"}}','sbatch job.sh','{"nodes": 2, "ranks_per_node": 8, "tasks_per_node": 8, "cpus_per_task": 7, "gpus_per_node": 8, "whole_nodes": true, "masks": ["0xfe", "0x01"], "planned_cores": ["1-7", "0"], "exact": false, "unplanned": ""}','{"amount": 32.0, "unit": "GPU-hours", "per_hour": 16.0}',256,'{"a": 1}','/home/me/project','job.yaml','/scratch/me/project/runs/1','/scratch/me/project','0123456789abcdef','abc123','main',1,NULL,'running','42','','',NULL,NULL,1,NULL,NULL,NULL,0.0,'','{"1": 7}',24,0,'parent-000001','ä note',0);
CREATE TABLE texts (run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, script TEXT NOT NULL, patch TEXT NOT NULL, binding TEXT);
INSERT INTO "texts" VALUES('parent-000001','#!/bin/bash -l
','+a patch
',NULL);
INSERT INTO "texts" VALUES('child-000002','#!/bin/bash -l
','+a patch
','[]');
CREATE INDEX runs_created ON runs (created, id);
CREATE INDEX runs_state ON runs (state);
CREATE INDEX runs_parent ON runs (parent);
COMMIT;
PRAGMA user_version = 2;
