#!/usr/bin/env bash
# NCBI BLAST+: databases of version 5, whose accessions and taxonomies are in LMDB; sequences by name,
# by taxonomy, searched, and several databases under one alias.
. "$(dirname "$0")/common.sh"
need ncbi-blast+
work() {
    cd "$store" || return 1
    awk 'BEGIN {
        srand(7); split("A C G T", letter, " ")
        for (i = 1; i <= 2000; i++) {
            s = ""
            for (j = 0; j < 120; j++) s = s letter[1 + int(rand() * 4)]
            printf ">gnl|own|seq%05d number %d\n%s\n", i, i, s > "all.fasta"
            if (i % 400 == 0) printf ">query%d\n%s\n", i, s > "query.fasta"
            printf "gnl|own|seq%05d %d\n", i, 9600 + i % 7 > "taxa"
        }
    }'
    head -2000 all.fasta >first.fasta
    tail -2000 all.fasta >second.fasta
    local part
    for part in first second; do
        on makeblastdb -in $part.fasta -dbtype nucl -parse_seqids -blastdb_version 5 -taxid_map taxa -out $part -title "$part" |
            grep -e title -e added | sed 's, in [0-9.]* seconds,,' || return 1
    done
    ls first.* | sort
    on blastdb_aliastool -dblist "first second" -dbtype nucl -out both -title both 2>&1
    for i in 00001 00777 01500 02000; do
        on blastdbcmd -db both -entry "gnl|own|seq$i" -outfmt '%a %T %l %s' 2>&1
    done
    on blastdbcmd -db first -entry 'gnl|own|seq99999' 2>&1 | sed 's/.*Error/Error/'
    on blastdbcmd -db first -entry all -outfmt '%a %T' | md5sum
    on blastdbcmd -db second -taxids 9603 -outfmt '%a' | sort | md5sum
    printf 'gnl|own|seq00005\ngnl|own|seq00006\nseq00900\n' >names
    on blastdbcmd -db first -entry_batch names -outfmt '%a %s' 2>&1
    on blastn -db both -query query.fasta -outfmt '6 qseqid sacc pident length staxids' -evalue 1e-20 -num_threads 2 2>&1 | sort
    on blastn -db both -query query.fasta -outfmt '6 qseqid sacc length' -evalue 1e-20 -taxids 9601 2>&1 | sort
    on blastn -db first -query query.fasta -outfmt '6 qseqid sacc length' -evalue 1e-20 -seqidlist names 2>&1 | sort
    on blastdbcmd -db both -info 2>&1 | grep -e sequences -e title
}
compare "BLAST+ $(dpkg-query -W -f '${Version}' ncbi-blast+)"
